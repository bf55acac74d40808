import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookModel, Notebook } from '@jupyterlab/notebook';

/** Our entry of what a page tells others that have the same notebook open. */
const FIELD = 'jupyterDistWrites';

/** What we need of the awareness of a shared notebook. */
interface IAwareness {
  readonly clientID: number;
  getLocalState(): Record<string, unknown> | null;
  getStates(): Map<number, Record<string, unknown>>;
  setLocalState(state: Record<string, unknown> | null): void;
  setLocalStateField(field: string, value: unknown): void;
  on(event: 'change', listener: (change: IChange) => void): void;
}

/** Which pages came and went. */
interface IChange {
  added: number[];
  removed: number[];
}

/**
 * Which page writes the outputs of which cells.
 *
 * With real-time collaboration several pages have the same notebook, and all of them are told what a cell puts
 * out. The page that runs it writes, and says so; if that page is gone, one of the others does.
 */
export class CellWriters {
  constructor(private readonly _awareness: IAwareness) {}

  /** Say that this page writes the outputs of a cell. */
  take(cell: string): void {
    this._tell([...this._own, cell]);
  }

  /** Say that it does so no more, as often as it was taken. */
  leave(cell: string): void {
    const cells = [...this._own];
    const place = cells.indexOf(cell);
    if (place >= 0) {
      cells.splice(place, 1);
      this._tell(cells);
    }
  }

  /** Whether nobody writes a cell, and this page is the one to do so. */
  mayWrite(cell: string): boolean {
    const states = this._awareness.getStates();
    const isTaken = [...states.values()].some(state =>
      cellsOf(state).includes(cell)
    );
    return !isTaken && Math.min(...states.keys()) === this._awareness.clientID;
  }

  /** Tell pages that come of this one, as nobody else does, and call back when one has gone. */
  follow(onGone: () => void): void {
    this._awareness.on('change', ({ added, removed }) => {
      if (added.length > 0) {
        this._awareness.setLocalState(this._awareness.getLocalState());
      }
      if (removed.length > 0) {
        onGone();
      }
    });
  }

  private get _own(): string[] {
    return cellsOf(this._awareness.getLocalState() ?? {});
  }

  private _tell(cells: string[]): void {
    this._awareness.setLocalStateField(FIELD, cells);
  }
}

function cellsOf(state: Record<string, unknown>): string[] {
  return (state[FIELD] as string[] | undefined) ?? [];
}

export function writersOf(notebook: INotebookModel): CellWriters {
  return new CellWriters(notebook.sharedModel.awareness);
}

/** Say of all cells that this page runs that it writes their outputs. */
export function tellWhatRuns(): void {
  const writers = ({ model }: Notebook) => model && writersOf(model);
  NotebookActions.executionScheduled.connect((_, { notebook, cell }) => {
    writers(notebook)?.take(cell.model.id);
  });
  NotebookActions.executed.connect((_, { notebook, cell }) => {
    writers(notebook)?.leave(cell.model.id);
  });
}
