import type { ISize } from './orders';
import type { IPainter } from './painter';

let count = 0;

/** Whether this browser lets a painter draw the pixels of a canvas. */
export function canPaint(): boolean {
  return 'transferControlToOffscreen' in HTMLCanvasElement.prototype;
}

/**
 * A canvas in the page, whose pixels a painter draws.
 */
export class Canvas {
  constructor(
    parent: HTMLElement,
    private readonly _painter: IPainter
  ) {
    this.node = parent.appendChild(document.createElement('canvas'));
    if (canPaint()) {
      const canvas = this.node.transferControlToOffscreen();
      _painter.obey({ type: 'take', id: this._id, canvas });
    }
  }

  readonly node: HTMLCanvasElement;

  /** What the painter has to know of it. */
  get size(): ISize {
    const ratio = window.devicePixelRatio;
    return {
      id: this._id,
      width: Math.round(this._width * ratio),
      height: Math.round(this._height * ratio),
      ratio
    };
  }

  /** Be so many of the page's pixels wide and high. */
  resize(width: number, height: number): void {
    if (width !== this._width || height !== this._height) {
      this._width = width;
      this._height = height;
      this.node.style.width = `${width}px`;
      this.node.style.height = `${height}px`;
    }
  }

  remove(): void {
    this.node.remove();
    this._painter.obey({ type: 'forget', id: this._id });
  }

  private readonly _id = count++;
  private _width = 0;
  private _height = 0;
}
