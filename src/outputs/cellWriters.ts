import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookModel, Notebook } from '@jupyterlab/notebook';

/** Our entry in the notebook's awareness. */
const FIELD = 'jupyterDistWrites';

type Awareness = Pick<
  INotebookModel['sharedModel']['awareness'],
  | 'clientID'
  | 'getLocalState'
  | 'getStates'
  | 'on'
  | 'setLocalState'
  | 'setLocalStateField'
>;

/**
 * Which page writes the outputs of which cells.
 *
 * With real-time collaboration, several pages have the same notebook, and all of them receive a cell's
 * outputs. The page that runs the cell writes them, and says so; if it is gone, another one does.
 */
export class CellWriters {
  constructor(private readonly _awareness: Awareness) {}

  take(cell: string): void {
    this._tell([...this._own, cell]);
  }

  /** Undo one call of `take`. */
  leave(cell: string): void {
    const cells = [...this._own];
    const place = cells.indexOf(cell);
    if (place >= 0) {
      cells.splice(place, 1);
      this._tell(cells);
    }
  }

  /** Whether no page writes a cell, and this page is the one to do so. */
  mayWrite(cell: string): boolean {
    const states = this._awareness.getStates();
    const isTaken = [...states.values()].some(state =>
      cellsOf(state).includes(cell)
    );
    return !isTaken && Math.min(...states.keys()) === this._awareness.clientID;
  }

  /** Introduce this page to new pages, which nothing else does, and call back when a page has gone. */
  follow(onGone: () => void): void {
    const onChange = ({
      added,
      removed
    }: Record<'added' | 'removed', number[]>) => {
      if (added.length > 0) {
        this._awareness.setLocalState(this._awareness.getLocalState());
      }
      if (removed.length > 0) {
        onGone();
      }
    };
    this._awareness.on('change', onChange);
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

/** Say of each cell that this page runs that it writes the outputs. */
export function tellWhatRuns(): void {
  const writers = ({ model }: Notebook) => model && writersOf(model);
  NotebookActions.executionScheduled.connect((_, { notebook, cell }) => {
    writers(notebook)?.take(cell.model.id);
  });
  NotebookActions.executed.connect((_, { notebook, cell }) => {
    writers(notebook)?.leave(cell.model.id);
  });
}
