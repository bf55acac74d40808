import { SET_BACK } from './serverTime';

/**
 * A value over the last while, in columns of equal width that stay where they are: a new value
 * changes the last column only, until time has moved on by a whole one.
 */
export class Series {
  constructor(
    /** Seconds. */
    span: number,
    columns: number
  ) {
    this._width = span / columns;
    this._columns = new Array<number | null>(columns).fill(null);
  }

  /** The mean of each column, null where nothing is known; another array after each change. */
  get columns(): readonly (number | null)[] {
    return this._columns;
  }

  /**
   * Add a value, or null from when on it is not known. Between two values the former holds.
   *
   * `time` is in Unix seconds; one that lies before the last column is ignored, unless the clock was
   * set back, which begins the series again.
   */
  push(time: number, value: number | null): void {
    const column = Math.floor(time / this._width);
    const last = this._last ?? -Infinity;
    // A null may be of long ago: of when the driver ceased to respond.
    if (value !== null && time < last * this._width - SET_BACK) {
      this._last = this._value = null;
      this._columns = this._columns.map(() => null);
    }
    const steps = this._last === null ? Infinity : column - this._last;
    if (steps < 0) {
      return;
    }
    if (steps > 0) {
      this._move(column, Math.min(steps, this._columns.length));
    }
    this._value = value;
    if (value === null) {
      return;
    }
    this._sum += value;
    this._count += 1;
    const mean = Math.round((this._sum / this._count) * 10) / 10;
    if (this._columns[this._columns.length - 1] !== mean) {
      this._columns = [...this._columns.slice(0, -1), mean];
    }
  }

  private _move(column: number, steps: number): void {
    const held = this._last === null ? null : this._value;
    const moved = [
      ...this._columns.slice(steps),
      ...new Array<number | null>(steps).fill(held)
    ];
    if (moved.some((value, index) => value !== this._columns[index])) {
      this._columns = moved;
    }
    this._last = column;
    this._sum = this._count = 0;
  }

  private readonly _width: number;
  private _columns: readonly (number | null)[];
  /** The number of the newest column, counted from 1970. */
  private _last: number | null = null;
  private _value: number | null = null;
  private _sum = 0;
  private _count = 0;
}
