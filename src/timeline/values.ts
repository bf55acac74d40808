import { Canvas } from './canvas';
import type { IColours } from './colours';
import type { IWords } from './orders';
import type { IPainter } from './painter';
import { WORDS_WIDTH } from './sizes';

/** Pixels from a row's upper edge to the middle of the first and of the third line. */
const [FIRST, THIRD] = [16, 50];

/** What changes all the time beside a curve. */
export interface IReadout {
  readonly value: string;
  readonly memory: string;
}

/**
 * The values beside the curves.
 *
 * They change all the time: as text of the page, each would have the browser lay it out and paint it,
 * which takes longer than all curves together. Screen readers find them in the curves' names.
 */
export class Values {
  constructor(
    private readonly _parent: HTMLElement,
    private readonly _painter: IPainter
  ) {}

  /** Have all of them drawn anew. */
  resize(rows: number, rowHeight: number): void {
    this._rowHeight = rowHeight;
    this._canvas ??= this._make();
    this._canvas.resize(WORDS_WIDTH, rows * rowHeight);
    this._drawn = [];
  }

  draw(rows: readonly IReadout[], colours: IColours): void {
    if (!this._canvas) {
      return;
    }
    const { size } = this._canvas;
    if (colours !== this._colours || size.ratio !== this._ratio) {
      this._colours = colours;
      this._ratio = size.ratio;
      this._drawn = [];
    }
    const words = [
      ...this._changed(rows, 'value', FIRST),
      ...this._changed(rows, 'memory', THIRD)
    ];
    if (words.length) {
      const { text, quiet, font } = colours;
      this._painter.obey({
        type: 'write',
        ...size,
        isAll: this._drawn.length === 0,
        words,
        colours: { text, quiet, font }
      });
      this._drawn = rows.map(({ value, memory }) => ({ value, memory }));
    }
  }

  private _make(): Canvas {
    const canvas = new Canvas(this._parent, this._painter);
    canvas.node.className = 'jp-dist-Timeline-values';
    canvas.node.setAttribute('aria-hidden', 'true');
    return canvas;
  }

  private _changed(
    rows: readonly IReadout[],
    style: IWords['style'],
    middle: number
  ): IWords[] {
    return rows.flatMap((readout, row) =>
      readout[style] === this._drawn[row]?.[style]
        ? []
        : [{ text: readout[style], style, y: row * this._rowHeight + middle }]
    );
  }

  private _canvas: Canvas | null = null;
  private _ratio = 0;
  private _colours: IColours | null = null;
  private _rowHeight = 1;
  private _drawn: readonly IReadout[] = [];
}
