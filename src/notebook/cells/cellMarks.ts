import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { CellList, Notebook } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { CellMark } from './cellMark';

/**
 * Keeps a mark on each code cell of a notebook, also on those that come later.
 */
export class CellMarks {
  constructor(
    private readonly _notebook: Notebook,
    private readonly _trans: TranslationBundle,
    private readonly _isMode: () => boolean,
    private readonly _moved: () => void
  ) {
    _notebook.modelChanged.connect(this._follow, this);
    this._follow();
  }

  /** Look at all cells again, if the mode is another one. */
  follow(): void {
    const isMode = this._isMode();
    if (isMode !== this._wasMode) {
      this._wasMode = isMode;
      this._marks.forEach(mark => mark.look());
    }
  }

  private _follow(): void {
    this._cells?.changed.disconnect(this._markNew, this);
    this._cells = this._notebook.model?.cells ?? null;
    this._cells?.changed.connect(this._markNew, this);
    this._markNew();
  }

  private _markNew(): void {
    for (const cell of this._notebook.widgets as readonly Cell<ICellModel>[]) {
      if (cell.model.type === 'code' && !this._marked.has(cell)) {
        const mark = new CellMark(cell, this._trans, this._isMode, this._moved);
        this._marked.add(cell);
        this._marks.add(mark);
        cell.disposed.connect(() => this._marks.delete(mark));
      }
    }
  }

  private readonly _marked = new WeakSet<Cell>();
  private readonly _marks = new Set<CellMark>();
  private _wasMode = false;
  private _cells: CellList | null = null;
}
