import { Signal } from '@lumino/signaling';

import type { Client } from '../model/restClient';
import type { IGpuHistory, Values } from '../model/gpuContract';
import { SET_BACK } from '../model/serverTime';
import type { IPoolsModel } from '../model/tokens';
import { METRICS, type ChartMetric } from './metrics';

/** A value for each row, null where nothing is known. */
export type Column = (number | null)[];
type Read = (uuid: string, metric: ChartMetric) => number | null;

/** A chart has about as many pixels. */
const ROWS = 900;
/** Rows that may be older than the span before they are dropped, all at once. */
const SLACK = 100;
/** The part of a row's length by which a sample may come too early for its row. */
const EARLY = 0.1;
/** After a pause that is so many times longer than usual, the curve has a gap. */
const PAUSE = 3;

/** The length of a row, in seconds. */
export function stepOf(span: number): number {
  return Math.max(1, span / ROWS);
}

/** The values of some GPUs over a while, in rows of the same times. */
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
  end: number | null = null;

  /** The same array as long as this recording is used; empty for an unknown GPU. */
  column(uuid: string, metric: ChartMetric): Column {
    return this._gpus.get(uuid)?.[metric] ?? [];
  }

  addHistory({ times, gpus }: IGpuHistory): void {
    times.forEach((time, row) =>
      this._add(time, (uuid, metric) => gpus[uuid]?.[metric]?.[row] ?? null)
    );
  }

  /** Add a sample; an old one is ignored, unless the clock was set back. */
  add(time: number, values: (uuid: string) => Values): void {
    this._add(time, (uuid, metric) => values(uuid)[metric] ?? null);
  }

  private _add(time: number, read: Read): void {
    if (this.end !== null && time < this.end - SET_BACK) {
      this._forgetFrom(time);
    }
    const wait = time - (this.end ?? time);
    if (this.end !== null && wait <= 0) {
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
    this.end = time;
    this._trim(time - this.span - 2 * this._step);
  }

  private _append(time: number, read: Read): void {
    this.times.push(time);
    this._count = 1;
    this._each((column, uuid, metric) => column.push(read(uuid, metric)));
  }

  /** A row is the mean of its samples. */
  private _merge(read: Read): void {
    this._count += 1;
    this._each((column, uuid, metric) => {
      const value = read(uuid, metric);
      const mean = column.at(-1) ?? value;
      if (value !== null && mean !== null) {
        column[column.length - 1] = mean + (value - mean) / this._count;
      }
    });
  }

  /** These times come a second time; the server forgets them, too. */
  private _forgetFrom(time: number): void {
    const later = this.times.findIndex(known => known > time - this._step);
    const kept = later < 0 ? this.times.length : later;
    this.times.splice(kept);
    this._each(column => column.splice(kept));
    this.end = this.times[kept - 1] ?? null;
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
      METRICS.forEach(metric => visit(columns[metric], uuid, metric));
    }
  }

  private readonly _step: number;
  private readonly _gpus = new Map<string, Record<ChartMetric, Column>>();
  /** Seconds from one row to the next; older rows of the server are longer. */
  private _usual: number | null = null;
  private _count = 0;
}

export type IPast = Pick<Client, 'gpuHistory'>;

/** Records the samples that arrive, after the history that the server has. */
export class Records {
  constructor(
    private readonly _pools: IPoolsModel,
    private readonly _past: IPast,
    span: number
  ) {
    this.recording = new Recording(span, []);
  }

  /** Emitted when the history has come, or could not be loaded. */
  readonly loaded = new Signal<this, void>(this);
  /** Another object whenever the history has come. */
  recording: Recording;
  /** Why the history is missing, in a sentence. */
  error: string | null = null;

  /** Ask for so many seconds before a time, or before now. */
  async load(span: number, end: number | null): Promise<void> {
    const late: typeof this._late = [];
    this._late = late;
    const since = end === null ? -span : end - span;
    let history: IGpuHistory | null = null;
    let error: string | null = null;
    try {
      history = await this._past.gpuHistory(since, stepOf(span));
    } catch (reason) {
      error = reason instanceof Error ? reason.message : String(reason);
    }
    // Meanwhile, another range may have been chosen.
    if (this._late !== late) {
      return;
    }
    this._late = null;
    this.error = error;
    const uuids = this._pools.allGpus.map(({ uuid }) => uuid);
    this.recording = new Recording(span, uuids);
    if (history) {
      this.recording.addHistory(history);
    }
    for (const [time, values] of late) {
      this.recording.add(time, uuid => values.get(uuid) ?? {});
    }
    this.loaded.emit();
  }

  add(): void {
    const { allGpus, telemetry } = this._pools;
    const { time } = telemetry;
    if (time === null || time === this._time) {
      return;
    }
    this._time = time;
    const read = (uuid: string) => telemetry.gpu(uuid).values;
    if (this._late) {
      const values = allGpus.map(({ uuid }) => [uuid, read(uuid)] as const);
      this._late.push([time, new Map(values)]);
    } else {
      this.recording.add(time, read);
    }
  }

  dispose(): void {
    this._late = null;
    Signal.clearData(this);
  }

  private _time: number | null = null;
  /** Samples that arrive while the history is loaded. */
  private _late: [number, Map<string, Values>][] | null = null;
}
