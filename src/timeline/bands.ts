import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IPool, IRank } from '../model/contract';
import type { IPoolsModel } from '../tokens';

/** Seconds for which bands are kept: the longest range of the timeline. */
const KEEP = 3600;
/** And no more of them than this. */
const MOST = 2000;
/** Seconds within which the ranks begin one and the same cell that has no number. */
const TOGETHER = 2;

/** A time in which a rank was busy. */
export interface IStretch {
  readonly rank: number;
  readonly gpu: string | null;
  /** The notebook's number of the cell. */
  readonly cell: number | null;
  /** Unix seconds. */
  readonly start: number;
  /** Null while it lasts. */
  end: number | null;
}

/** One cell, on the ranks of one pool. */
export interface IBand {
  readonly id: number;
  readonly pool: string;
  /** The notebook: its path and its kernel, by which it can be found if it is not there any more. */
  readonly path: string;
  readonly kernelId: string | null;
  readonly cell: number | null;
  readonly start: number;
  readonly stretches: IStretch[];
}

/** When the last of its ranks was done; null while it lasts. */
export function endOf({ stretches }: IBand): number | null {
  let last = -Infinity;
  for (const { end } of stretches) {
    if (end === null) {
      return null;
    }
    last = Math.max(last, end);
  }
  return last;
}

/**
 * Which cell ran on which ranks when, as far as the states of the pools were seen.
 */
export class Bands {
  constructor(private readonly _model: IPoolsModel) {
    _model.changed.connect(this._look, this);
    this._look();
  }

  /** Tells from when on (Unix seconds) the bands are others than before. */
  get changed(): ISignal<this, number> {
    return this._changed;
  }

  /** By their start. */
  get all(): readonly IBand[] {
    return this._all;
  }

  /** When the ranks on a GPU were busy. */
  on(gpu: string): readonly IStretch[] {
    return this._byGpu.get(gpu) ?? [];
  }

  private _look(): void {
    let since = Infinity;
    for (const pool of this._model.pools.values()) {
      if (this._seen.get(pool.id) !== pool) {
        this._seen.set(pool.id, pool);
        for (const rank of pool.ranks) {
          since = Math.min(since, this._follow(pool, rank));
        }
      }
    }
    for (const [id, pool] of this._seen) {
      if (!this._model.pools.has(id)) {
        this._seen.delete(id);
        since = Math.min(since, this._closeAll(pool));
      }
    }
    if (since < Infinity) {
      this._forget();
      this._changed.emit(since);
    }
  }

  /** Answers from when on something is new of a rank. */
  private _follow(pool: IPool, told: IRank): number {
    const { rank, gpu, state, since, cell } = told;
    const key = `${pool.id} ${rank}`;
    const open = this._open.get(key);
    const isBusy = state === 'busy' && pool.ended === null;
    if (isBusy ? open?.start === since : !open) {
      return Infinity;
    }
    const end = open ? this._close(key, open, pool.ended ?? since) : Infinity;
    if (isBusy) {
      const uuid = gpu?.uuid ?? null;
      const stretch = { rank, gpu: uuid, cell, start: since, end: null };
      this._open.set(key, stretch);
      this._bandFor(pool, stretch).stretches.push(stretch);
      if (uuid !== null) {
        this._byGpu.set(uuid, [...this.on(uuid), stretch]);
      }
    }
    return Math.min(end, since);
  }

  /** The band that the other ranks have begun, or a new one. */
  private _bandFor(pool: IPool, { rank, cell, start }: IStretch): IBand {
    const last = this._all.filter(band => band.pool === pool.id).at(-1);
    if (
      last &&
      last.cell === cell &&
      !last.stretches.some(other => other.rank === rank) &&
      start < (endOf(last) ?? Infinity) + TOGETHER &&
      // Ranks that are busy with what came before may begin a cell much later than the others.
      (cell !== null || Math.abs(start - last.start) < TOGETHER)
    ) {
      return last;
    }
    const band = {
      id: this._count++,
      pool: pool.id,
      path: pool.name,
      kernelId: pool.kernel_id,
      cell,
      start,
      stretches: []
    };
    this._all.push(band);
    return band;
  }

  /** A pool that nobody tells of any more has ended, at the latest now. */
  private _closeAll(pool: IPool): number {
    const end = pool.ended ?? this._model.telemetry.time ?? Date.now() / 1000;
    let since = Infinity;
    for (const { rank } of pool.ranks) {
      const key = `${pool.id} ${rank}`;
      const open = this._open.get(key);
      if (open) {
        since = Math.min(since, this._close(key, open, end));
      }
    }
    return since;
  }

  private _close(key: string, stretch: IStretch, end: number): number {
    this._open.delete(key);
    return (stretch.end = Math.max(stretch.start, end));
  }

  private _forget(): void {
    const newest = this._all.at(-1)?.start ?? 0;
    const isKept = (end: number | null) => end === null || end > newest - KEEP;
    this._all = this._all.filter(band => isKept(endOf(band))).slice(-MOST);
    for (const [gpu, stretches] of this._byGpu) {
      const kept = stretches.filter(({ end }) => isKept(end)).slice(-MOST);
      if (kept.length) {
        this._byGpu.set(gpu, kept);
      } else {
        this._byGpu.delete(gpu);
      }
    }
  }

  private readonly _changed = new Signal<this, number>(this);
  /** By pool and rank. */
  private readonly _open = new Map<string, IStretch>();
  private readonly _byGpu = new Map<string, readonly IStretch[]>();
  private readonly _seen = new Map<string, IPool>();
  private _all: IBand[] = [];
  private _count = 0;
}
