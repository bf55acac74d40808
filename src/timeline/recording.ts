import type { IGpuHistory, Values } from '../model/gpuContract';
import { SET_BACK } from '../model/serverTime';
import { METRICS, type ChartMetric } from './metrics';

/** One value a row, null where nothing is known. */
export type Column = (number | null)[];
type Columns = Record<ChartMetric, Column>;

/** So many rows make a chart: there are hardly more pixels. */
const ROWS = 900;
/** Rows that may be older than the span before they are dropped, all at once. */
const SLACK = 100;
/** Seconds of the shortest row. */
const SHORTEST = 1;
/** The part of a row's length by which a sample may come too early for its row. */
const EARLY = 0.1;
/** So many times later than usual, nobody has sampled in between. */
const PAUSE = 3;

/** Seconds that one row sums up. */
export function stepOf(span: number): number {
  return Math.max(SHORTEST, span / ROWS);
}

/** What some GPUs did over a while, in rows that all of them share, as charts need it. */
export class Recording {
  constructor(
    /** Seconds. */
    readonly span: number,
    uuids: readonly string[]
  ) {
    this._step = stepOf(span);
    for (const uuid of uuids) {
      this._gpus.set(uuid, {
        utilization: [],
        memory_used: [],
        power: [],
        temperature: []
      });
    }
  }

  /** Unix seconds, rising. */
  readonly times: number[] = [];

  /** The newest sample, null if there is none. */
  get end(): number | null {
    return this._end;
  }

  /** The same array for as long as this recording is used; empty for a GPU that is not in it. */
  column(uuid: string, metric: ChartMetric): Column {
    return this._gpus.get(uuid)?.[metric] ?? [];
  }

  addHistory({ times, gpus }: IGpuHistory): void {
    times.forEach((time, row) =>
      this._add(time, (uuid, metric) => gpus[uuid]?.[metric]?.[row] ?? null)
    );
  }

  /**
   * Add what is known at a time. What is not newer than the rest is ignored, unless the clock was
   * set back.
   */
  add(time: number, values: (uuid: string) => Values): void {
    this._add(time, (uuid, metric) => values(uuid)[metric] ?? null);
  }

  private _add(
    time: number,
    read: (uuid: string, metric: ChartMetric) => number | null
  ): void {
    if (this._end !== null && time < this._end - SET_BACK) {
      this._forgetFrom(time);
    }
    const wait = time - (this._end ?? time);
    if (this._end !== null && wait <= 0) {
      return;
    }
    const begun = this.times[this.times.length - 1];
    const isSameRow = time - begun < (1 - EARLY) * this._step;
    if (this._usual !== null && wait > PAUSE * this._usual) {
      this._append(begun + this._step / 2, () => null);
    } else if (wait > 0 && !isSameRow) {
      this._usual = Math.max(wait, this._step);
    }
    if (isSameRow) {
      this._merge(read);
    } else {
      this._append(time, read);
    }
    this._end = time;
    this._trim(time - this.span - 2 * this._step);
  }

  private _append(
    time: number,
    read: (uuid: string, metric: ChartMetric) => number | null
  ): void {
    this.times.push(time);
    this._count = 1;
    this._each((column, uuid, metric) => column.push(read(uuid, metric)));
  }

  /** A row is the mean of its samples. */
  private _merge(
    read: (uuid: string, metric: ChartMetric) => number | null
  ): void {
    this._count += 1;
    this._each((column, uuid, metric) => {
      const [last, value] = [column.length - 1, read(uuid, metric)];
      const mean = column[last];
      if (value !== null) {
        column[last] =
          mean === null ? value : mean + (value - mean) / this._count;
      }
    });
  }

  /** As the server does: those times come a second time. */
  private _forgetFrom(time: number): void {
    const later = this.times.findIndex(known => known > time - this._step);
    const kept = later < 0 ? this.times.length : later;
    this.times.splice(kept);
    this._each(column => column.splice(kept));
    this._end = this.times[kept - 1] ?? null;
    this._count = 1;
  }

  private _trim(oldest: number): void {
    if (this.times[SLACK] < oldest) {
      const old = this.times.findIndex(time => time >= oldest);
      this.times.splice(0, old);
      this._each(column => column.splice(0, old));
    }
  }

  private _each(
    visit: (column: Column, uuid: string, metric: ChartMetric) => void
  ): void {
    for (const [uuid, columns] of this._gpus) {
      for (const metric of METRICS) {
        visit(columns[metric], uuid, metric);
      }
    }
  }

  private readonly _step: number;
  private readonly _gpus = new Map<string, Columns>();
  private _end: number | null = null;
  /** Seconds from one row to the next; older rows of the server are longer. */
  private _usual: number | null = null;
  /** Samples in the last row. */
  private _count = 0;
}
