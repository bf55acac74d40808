import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { ICells, IPool, IRank } from '../model/contract';
import { serverTime } from '../model/serverTime';
import type { IPoolsModel } from '../model/tokens';
import { exclude, newsOf } from './stretches';

/** Seconds for which bands are kept: the longest range of the timeline. */
const KEEP = 3600;
/** And no more of them than this. */
const MOST = 4000;
/** Seconds within which the ranks begin one and the same cell that has no number. */
const TOGETHER = 2;

/** A time in which a rank was busy. */
export interface IStretch {
  readonly rank: number;
  readonly gpu: string | null;
  /** The notebook's number of the cell. */
  readonly cell: number | null;
  /** The notebook's id of the cell. */
  readonly cell_id: string | null;
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
  /** Null if the front end that ran the cell gave none. */
  readonly cellId: string | null;
  readonly start: number;
  readonly stretches: IStretch[];
}

/** A pool, and the notebook that it serves. */
type Owner = Pick<IBand, 'pool' | 'path' | 'kernelId'>;

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
 * Which cell ran on which ranks when: as far as the states of the pools were seen, and what the
 * server tells of the time before.
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

  /** Take in what the server has seen, which may be more than was told here. */
  merge({ pools }: ICells): void {
    let since = Infinity;
    for (const { id, name, kernel_id, stretches } of pools) {
      const news = newsOf(stretchesOf(this._of(id)), stretches);
      if (news.length) {
        const owner = { pool: id, path: name, kernelId: kernel_id };
        since = Math.min(since, this._replace(owner, news));
      }
    }
    this._tell(since);
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
    this._tell(since);
  }

  private _tell(since: number): void {
    if (since < Infinity) {
      this._forget();
      this._changed.emit(since);
    }
  }

  /** Answers from when on something is new of a rank. */
  private _follow(pool: IPool, told: IRank): number {
    const { rank, gpu, state, since, cell, cell_id } = told;
    const last = this._newest.get(`${pool.id} ${rank}`);
    const open = last?.end === null ? last : null;
    const isBusy = state === 'busy' && pool.ended === null;
    if (isBusy ? open?.start === since : !open) {
      return Infinity;
    }
    const begin = open ? close(open, pool.ended ?? since) : Infinity;
    if (!isBusy) {
      return begin;
    }
    const owner = { pool: pool.id, path: pool.name, kernelId: pool.kernel_id };
    const uuid = gpu?.uuid ?? null;
    const stretch = {
      ...{ rank, gpu: uuid, cell, cell_id },
      ...{ start: since, end: null }
    };
    if (last && exclude(last, stretch)) {
      // It was taken to be over when the server was lost, but goes on.
      return this._replace(owner, [stretch]);
    }
    this._add(owner, stretch);
    if (uuid !== null) {
      this._byGpu.set(uuid, [...this.on(uuid), stretch]);
    }
    return Math.min(begin, since);
  }

  /** Put stretches in the place of those that they exclude; answers from when on that is new. */
  private _replace(owner: Owner, news: readonly IStretch[]): number {
    const known = this._of(owner.pool);
    const old = new Set(stretchesOf(known));
    const wrong = [...old].filter(one =>
      news.some(other => exclude(one, other))
    );
    const ids = new Map(known.map(band => [nameOf(band), band.id]));
    this._all = this._all.filter(({ pool }) => pool !== owner.pool);
    const byGpu = new Map<string, IStretch[]>();
    for (const [gpu, stretches] of this._byGpu) {
      byGpu.set(
        gpu,
        stretches.filter(one => !old.has(one))
      );
    }
    wrong.forEach(one => old.delete(one));
    for (const stretch of [...old, ...news].sort(byStart)) {
      this._add(owner, stretch, ids);
      const { gpu } = stretch;
      if (gpu !== null) {
        byGpu
          .set(gpu, byGpu.get(gpu) ?? [])
          .get(gpu)
          ?.push(stretch);
      }
    }
    this._all.sort(byStart);
    byGpu.forEach((all, gpu) => this._byGpu.set(gpu, all.sort(byStart)));
    return Math.min(...[...wrong, ...news].map(({ start }) => start));
  }

  private _add(owner: Owner, stretch: IStretch, ids?: Map<string, number>) {
    this._newest.set(`${owner.pool} ${stretch.rank}`, stretch);
    this._bandFor(owner, stretch, ids).stretches.push(stretch);
  }

  /** The band that the other ranks have begun, or a new one. */
  private _bandFor(
    owner: Owner,
    stretch: IStretch,
    ids?: Map<string, number>
  ): IBand {
    const last = this._lastOf(owner.pool);
    if (last && belongs(stretch, last)) {
      return last;
    }
    const { cell, cell_id: cellId, start } = stretch;
    const known = ids?.get(nameOf({ cell, start }));
    const id = known ?? this._count++;
    const band = { ...owner, id, cell, cellId, start, stretches: [] };
    this._all.push(band);
    return band;
  }

  /** A pool that nobody tells of any more has ended, at the latest now. */
  private _closeAll(pool: IPool): number {
    const end = pool.ended ?? this._model.telemetry.time ?? serverTime();
    let since = Infinity;
    for (const { rank } of pool.ranks) {
      const newest = this._newest.get(`${pool.id} ${rank}`);
      if (newest?.end === null) {
        since = Math.min(since, close(newest, end));
      }
    }
    return since;
  }

  /** By their start. */
  private _of(id: string): IBand[] {
    return this._all.filter(({ pool }) => pool === id);
  }

  private _lastOf(id: string): IBand | undefined {
    let index = this._all.length - 1;
    while (index >= 0 && this._all[index].pool !== id) {
      index--;
    }
    return this._all[index];
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
    for (const [key, { end }] of this._newest) {
      if (!isKept(end)) {
        this._newest.delete(key);
      }
    }
  }

  private readonly _changed = new Signal<this, number>(this);
  /** By pool and rank: what it did last. */
  private readonly _newest = new Map<string, IStretch>();
  private readonly _byGpu = new Map<string, readonly IStretch[]>();
  private readonly _seen = new Map<string, IPool>();
  private _all: IBand[] = [];
  private _count = 0;
}

/** Whether a rank begins the cell that other ranks have begun before. */
function belongs(
  { rank, cell, cell_id, start }: IStretch,
  band: IBand
): boolean {
  return (
    band.cell === cell &&
    band.cellId === cell_id &&
    !band.stretches.some(other => other.rank === rank) &&
    start < (endOf(band) ?? Infinity) + TOGETHER &&
    // Ranks that are busy with what came before may begin a cell much later than the others.
    (cell !== null || Math.abs(start - band.start) < TOGETHER)
  );
}

function close(stretch: IStretch, end: number): number {
  return (stretch.end = Math.max(stretch.start, end));
}

function stretchesOf(bands: readonly IBand[]): IStretch[] {
  return bands.flatMap(({ stretches }) => stretches);
}

function byStart(a: { start: number }, b: { start: number }): number {
  return a.start - b.start;
}

/** What a band of a pool is known by when its ranks are put together anew. */
function nameOf({ cell, start }: Pick<IBand, 'cell' | 'start'>): string {
  return `${cell} ${start}`;
}
