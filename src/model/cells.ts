import { Signal } from '@lumino/signaling';

import type { ICell, ICellsMessage, IStretch } from './cellContract';

/** How long cells are kept, in seconds: the longest range of the timeline. */
const KEEP = 3600;
/** The most cells that are kept. */
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

export type ICellHistory = Readonly<CellHistory>;

/** Which cells ran on which ranks when, in the last hour, while somebody watches. */
export class CellHistory {
  readonly changed = new Signal<unknown, void>(this);
  /** By their start; one that has changed is another object. */
  all: readonly ICellRun[] = [];

  /** When the ranks on a GPU were busy. */
  on(gpu: string): readonly IRankRun[] {
    return this._byGpu.get(gpu) ?? [];
  }

  take({ complete, cells }: ICellsMessage): void {
    const known = new Map(
      complete ? [] : this.all.map(cell => [keyOf(cell), cell])
    );
    cells.forEach(cell => known.set(keyOf(cell), withSpan(cell)));
    const all = [...known.values()].sort((a, b) => a.start - b.start);
    const oldest = (all.at(-1)?.start ?? 0) - KEEP;
    this.all = all
      .filter(({ end }) => end === null || end > oldest)
      .slice(-MOST);
    this._byGpu = new Map();
    for (const { cell, stretches } of this.all) {
      for (const stretch of stretches) {
        const runs = this._byGpu.get(stretch.gpu) ?? [];
        this._byGpu.set(stretch.gpu, runs);
        runs.push({ ...stretch, cell });
      }
    }
    this.changed.emit();
  }

  private _byGpu = new Map<string | null, IRankRun[]>();
}

function keyOf({ pool, id }: ICell): string {
  return `${pool} ${id}`;
}

function withSpan(cell: ICell): ICellRun {
  const last = Math.max(...cell.stretches.map(({ end }) => end ?? Infinity));
  return {
    ...cell,
    start: Math.min(...cell.stretches.map(({ start }) => start)),
    end: last === Infinity ? null : last
  };
}
