import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { ICell, ICellsMessage, IStretch } from './cellContract';

/** Seconds for which cells are kept: the longest range of the timeline. */
const KEEP = 3600;
/** And no more of them than this. */
const MOST = 4000;

/** One execution of a cell, on the ranks of one pool. */
export interface ICellRun extends ICell {
  /** When the first of its ranks began. */
  readonly start: number;
  /** When the last of its ranks was done; null while it lasts. */
  readonly end: number | null;
}

/** A time in which a rank was busy, and the notebook's number of the cell. */
export type IRankRun = IStretch & Pick<ICell, 'cell'>;

/** Which cells ran on which ranks when, in the last hour, while somebody watches. */
export interface ICellHistory {
  readonly changed: ISignal<ICellHistory, void>;
  /** By their start; one that has changed is another object. */
  readonly all: readonly ICellRun[];
  /** When the ranks on a GPU were busy. */
  on(gpu: string): readonly IRankRun[];
}

/**
 * Keeps the cells that the stream tells of.
 */
export class CellHistory implements ICellHistory {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get all(): readonly ICellRun[] {
    return this._all;
  }

  on(gpu: string): readonly IRankRun[] {
    return this._byGpu.get(gpu) ?? [];
  }

  take({ complete, cells }: ICellsMessage): void {
    const known = new Map(
      complete ? [] : this._all.map(cell => [keyOf(cell), cell])
    );
    cells.forEach(cell => known.set(keyOf(cell), withSpan(cell)));
    const all = [...known.values()].sort((a, b) => a.start - b.start);
    const oldest = (all.at(-1)?.start ?? 0) - KEEP;
    this._all = all
      .filter(({ end }) => end === null || end > oldest)
      .slice(-MOST);
    this._byGpu = new Map();
    for (const { cell, stretches } of this._all) {
      for (const stretch of stretches) {
        this._add({ ...stretch, cell });
      }
    }
    this._changed.emit();
  }

  private _add(run: IRankRun): void {
    if (run.gpu !== null) {
      const runs = this._byGpu.get(run.gpu) ?? [];
      this._byGpu.set(run.gpu, runs);
      runs.push(run);
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _all: readonly ICellRun[] = [];
  private _byGpu = new Map<string, IRankRun[]>();
}

function keyOf({ pool, id }: ICell): string {
  return `${pool} ${id}`;
}

function withSpan(cell: ICell): ICellRun {
  const ends = cell.stretches.map(({ end }) => end ?? Infinity);
  const last = Math.max(...ends);
  return {
    ...cell,
    start: Math.min(...cell.stretches.map(({ start }) => start)),
    end: last === Infinity ? null : last
  };
}
