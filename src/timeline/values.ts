import type { IColours } from './colours';
import { VALUE_WIDTH } from './sizes';

const TEXT = 12;
/** Pixels from a row's upper edge to the middle of the text. */
const MIDDLE = 16;

/**
 * The values beside the curves.
 *
 * They change all the time: as text of the page, each would have the browser lay it out and paint it,
 * which takes longer than all curves together. Screen readers find them in the curves' names.
 */
export class Values {
  constructor(parent: HTMLElement) {
    this._canvas = parent.appendChild(document.createElement('canvas'));
    this._canvas.className = 'jp-dist-Timeline-values';
    this._canvas.setAttribute('aria-hidden', 'true');
  }

  /** Have all of them drawn anew. */
  resize(rows: number, rowHeight: number): void {
    const ratio = window.devicePixelRatio;
    this._rowHeight = rowHeight;
    this._canvas.width = Math.round(VALUE_WIDTH * ratio);
    this._canvas.height = Math.round(rows * rowHeight * ratio);
    this._canvas.style.height = `${rows * rowHeight}px`;
    this._drawn = [];
  }

  draw(values: readonly string[], colours: IColours): void {
    if (colours !== this._colours) {
      this._colours = colours;
      this._drawn = [];
    }
    const ctx = values.some((value, row) => value !== this._drawn[row])
      ? this._canvas.getContext('2d')
      : null;
    if (!ctx) {
      return;
    }
    const ratio = window.devicePixelRatio;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = `600 ${TEXT}px ${colours.font}`;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.fillStyle = colours.text;
    values.forEach((value, row) => {
      if (value !== this._drawn[row]) {
        const top = row * this._rowHeight;
        ctx.clearRect(0, top, VALUE_WIDTH, this._rowHeight);
        ctx.fillText(value, VALUE_WIDTH, top + MIDDLE);
      }
    });
    this._drawn = values;
  }

  private readonly _canvas: HTMLCanvasElement;
  private _colours: IColours | null = null;
  private _rowHeight = 1;
  private _drawn: readonly string[] = [];
}
