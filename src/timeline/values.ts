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
    parent: HTMLElement,
    private readonly _painter: IPainter
  ) {
    this._canvas = new Canvas(parent, _painter);
    this._canvas.node.className = 'jp-dist-Timeline-values';
    this._canvas.node.setAttribute('aria-hidden', 'true');
  }

  /** Have all of them drawn anew. */
  resize(rows: number, rowHeight: number): void {
    this._rowHeight = rowHeight;
    this._canvas.resize(WORDS_WIDTH, rows * rowHeight);
    this._drawn = [];
  }

  draw(rows: readonly IReadout[], colours: IColours): void {
    if (colours !== this._colours) {
      this._colours = colours;
      this._drawn = [];
    }
    const words = [
      ...this._changed(rows, 'value', FIRST),
      ...this._changed(rows, 'memory', THIRD)
    ];
    if (words.length) {
      const { text, quiet, font } = colours;
      this._drawn = rows.map(({ value, memory }) => ({ value, memory }));
      this._painter.obey({
        type: 'write',
        ...this._canvas.size,
        words,
        colours: { text, quiet, font }
      });
    }
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

  private readonly _canvas: Canvas;
  private _colours: IColours | null = null;
  private _rowHeight = 1;
  private _drawn: readonly IReadout[] = [];
}
