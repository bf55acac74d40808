import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IPool, IRank } from '../model/contract';
import type { IPoolsModel } from '../tokens';

/** Seconds for which bands are kept: the longest range of the timeline. */
const KEEP = 3600;
/** And no more of them than this. */
const MOST = 2000;
/** Seconds within which the ranks begin one and the same cell. */
const TOGETHER = 2;

/** A time in which a rank was busy. */
export interface IStretch {
  readonly rank: number;
  readonly gpu: string | null;
  /** Unix seconds. */
  readonly start: number;
  /** Null while it lasts. */
  end: number | null;
}

/** What the ranks of a pool did together: most likely one cell. */
export interface IBand {
  readonly pool: string;
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
 * When which ranks were busy, as far as the states of the pools were seen.
 */
export class Bands {
  constructor(private readonly _model: IPoolsModel) {
    _model.changed.connect(this._look, this);
    this._look();
  }

  get changed(): ISignal<this, void> {
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
    let isChanged = false;
    for (const pool of this._model.pools.values()) {
      if (this._seen.get(pool.id) !== pool) {
        this._seen.set(pool.id, pool);
        for (const rank of pool.ranks) {
          isChanged = this._follow(pool, rank) || isChanged;
        }
      }
    }
    for (const [id, pool] of this._seen) {
      if (!this._model.pools.has(id)) {
        this._seen.delete(id);
        isChanged = this._closeAll(pool) || isChanged;
      }
    }
    if (isChanged) {
      this._forget();
      this._changed.emit();
    }
  }

  private _follow(pool: IPool, { rank, gpu, state, since }: IRank): boolean {
    const key = `${pool.id} ${rank}`;
    const open = this._open.get(key);
    const isBusy = state === 'busy' && pool.ended === null;
    if (isBusy ? open?.start === since : !open) {
      return false;
    }
    if (open) {
      open.end = Math.max(open.start, pool.ended ?? since);
      this._open.delete(key);
    }
    if (isBusy) {
      const uuid = gpu?.uuid ?? null;
      const stretch = { rank, gpu: uuid, start: since, end: null };
      this._open.set(key, stretch);
      this._bandFor(pool.id, stretch).stretches.push(stretch);
      if (uuid !== null) {
        this._byGpu.set(uuid, [...this.on(uuid), stretch]);
      }
    }
    return true;
  }

  /** The band that the other ranks have just begun, or a new one. */
  private _bandFor(pool: string, { rank, start }: IStretch): IBand {
    const last = this._all.filter(band => band.pool === pool).at(-1);
    if (
      last &&
      Math.abs(start - last.start) < TOGETHER &&
      start <= (endOf(last) ?? Infinity) &&
      !last.stretches.some(other => other.rank === rank)
    ) {
      return last;
    }
    const band = { pool, start, stretches: [] };
    this._all.push(band);
    return band;
  }

  /** A pool that nobody tells of any more has ended, at the latest now. */
  private _closeAll(pool: IPool): boolean {
    const end = pool.ended ?? this._model.telemetry.time ?? Date.now() / 1000;
    let isChanged = false;
    for (const { rank } of pool.ranks) {
      const key = `${pool.id} ${rank}`;
      const open = this._open.get(key);
      if (open) {
        open.end = Math.max(open.start, end);
        this._open.delete(key);
        isChanged = true;
      }
    }
    return isChanged;
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

  private readonly _changed = new Signal<this, void>(this);
  /** By pool and rank. */
  private readonly _open = new Map<string, IStretch>();
  private readonly _byGpu = new Map<string, readonly IStretch[]>();
  private readonly _seen = new Map<string, IPool>();
  private _all: IBand[] = [];
}
