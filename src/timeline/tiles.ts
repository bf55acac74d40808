import { Canvas } from './canvas';
import { cut } from './orders';
import type { IScene, Stretch } from './paint';
import type { IPainter } from './painter';

/** Pixels of a tile: whenever something on it has changed, all of it is copied to the screen. */
const WIDTH = 128;

/**
 * What is drawn, in pieces side by side that stay as they are while time moves them to the left.
 */
export class Tiles {
  constructor(
    private readonly _parent: HTMLElement,
    private readonly _painter: IPainter
  ) {}

  /** Forget what is drawn. */
  clear(): void {
    this._isStale = true;
  }

  /**
   * Show some pixels of the scene, and draw what is not there yet or has changed since.
   *
   * `changed` is the pixel from which on it has.
   */
  draw(
    scene: IScene,
    [from, to]: Stretch,
    rows: Stretch,
    changed: number
  ): void {
    const first = Math.floor(from / WIDTH);
    const last = Math.floor((to - 1) / WIDTH);
    for (const [index, canvas] of this._tiles) {
      if (index < first || index > last) {
        this._tiles.delete(index);
        canvas.remove();
      }
    }
    const height = scene.curves.length * scene.rowHeight;
    for (let index = first; index <= last; index++) {
      const edge = index * WIDTH;
      const isNew = this._isStale || !this._tiles.has(index);
      const start = isNew ? edge : Math.max(edge, Math.floor(changed));
      if (start < edge + WIDTH) {
        const canvas = this._tiles.get(index) ?? this._make(index);
        canvas.resize(WIDTH, height);
        const stretch = [start, edge + WIDTH] as const;
        this._painter.obey({
          type: 'paint',
          ...canvas.size,
          part: cut(scene, stretch, rows),
          edge,
          stretch,
          rows
        });
      }
    }
    this._isStale = false;
  }

  private _make(index: number): Canvas {
    const canvas = new Canvas(this._parent, this._painter);
    canvas.node.style.left = `${index * WIDTH}px`;
    this._tiles.set(index, canvas);
    return canvas;
  }

  private readonly _tiles = new Map<number, Canvas>();
  private _isStale = true;
}
