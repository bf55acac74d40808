import type uPlot from 'uplot';

/** Pixels that one corner of the area sums up. */
const COARSE = 3;

/**
 * The line of a plot's first curve, and the area below it.
 *
 * Without a GPU the browser fills shapes on the main thread, and many times faster where they have
 * fewer corners than pixels: so the line has all values, and the pale area their means.
 */
export function traceCurve(plot: uPlot): { line: Path2D; area: Path2D } {
  const times = plot.data[0];
  const values = plot.data[1];
  const { left, top, width, height } = plot.bbox;
  const begin = plot.scales.x.min ?? 0;
  const end = plot.scales.x.max ?? 1;
  const across = width / (end - begin);
  const up = height / (plot.scales.y.max ?? 1);
  const bottom = top + height;
  const line = new Path2D();
  const area = new Area(bottom);
  let isOpen = false;
  const last = Math.min(times.length - 1, plot.valToIdx(end) + 1);
  for (
    let index = Math.max(0, plot.valToIdx(begin) - 1);
    index <= last;
    index++
  ) {
    const value = values[index];
    if (value === null || value === undefined) {
      isOpen = false;
      area.close();
      continue;
    }
    const x = left + (times[index] - begin) * across;
    // At the edges one half of the line would not be seen.
    const y = Math.min(Math.max(bottom - value * up, top + 0.5), bottom - 0.5);
    if (isOpen) {
      line.lineTo(x, y);
    } else {
      line.moveTo(x, y);
      isOpen = true;
    }
    area.add(x, y);
  }
  area.close();
  return { line, area: area.path };
}

class Area {
  constructor(private readonly _bottom: number) {}

  readonly path = new Path2D();

  add(x: number, y: number): void {
    if (!this._isOpen) {
      this._isOpen = true;
      this.path.moveTo(x, this._bottom);
      this.path.lineTo(x, y);
      this._begin(x);
    }
    if (x - this._from >= COARSE) {
      this._corner();
      this._begin(x);
    }
    this._x = x;
    this._y = y;
    this._sumX += x;
    this._sumY += y;
    this._count += 1;
  }

  close(): void {
    if (this._isOpen) {
      this._corner();
      this.path.lineTo(this._x, this._y);
      this.path.lineTo(this._x, this._bottom);
      this._isOpen = false;
    }
  }

  private _begin(x: number): void {
    this._from = x;
    this._sumX = this._sumY = this._count = 0;
  }

  private _corner(): void {
    if (this._count) {
      this.path.lineTo(this._sumX / this._count, this._sumY / this._count);
    }
  }

  private _isOpen = false;
  private _from = 0;
  private _x = 0;
  private _y = 0;
  private _sumX = 0;
  private _sumY = 0;
  private _count = 0;
}
