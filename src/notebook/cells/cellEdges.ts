import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { CellList, Notebook } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { colourOf } from '../../ui/meters';
import { headLength, listedRanks, sayWhere, whereRuns } from './magic';
import type { Where } from './magic';

export class CellEdges {
  constructor(
    private readonly _notebook: Notebook,
    private readonly _isMode: () => boolean,
    private readonly _moved: () => void
  ) {
    _notebook.modelChanged.connect(this._follow, this);
    this._follow();
  }

  /** Update all edges if the mode has changed. */
  follow(): void {
    const isMode = this._isMode();
    if (isMode !== this._wasMode) {
      this._wasMode = isMode;
      this._edges.forEach(edge => edge.look());
    }
  }

  private _follow(): void {
    this._cells?.changed.disconnect(this._addNew, this);
    this._cells = this._notebook.model?.cells ?? null;
    this._cells?.changed.connect(this._addNew, this);
    this._addNew();
  }

  private _addNew(): void {
    for (const cell of this._notebook.widgets as readonly Cell<ICellModel>[]) {
      if (cell.model.type === 'code' && !this._known.has(cell)) {
        const edge = new CellEdge(cell, this._isMode, this._moved);
        this._known.add(cell);
        this._edges.add(edge);
        cell.disposed.connect(() => this._edges.delete(edge));
      }
    }
  }

  private readonly _known = new WeakSet<Cell>();
  private readonly _edges = new Set<CellEdge>();
  private _wasMode = false;
  private _cells: CellList | null = null;
}

interface IChange {
  sourceChange?: { retain?: number }[];
}

export class CellEdge {
  constructor(
    private readonly _cell: Cell,
    private readonly _isMode: () => boolean,
    private readonly _moved: () => void
  ) {
    this._node.className = 'jp-dist-CellEdge';
    this._node.setAttribute('role', 'img');
    _cell.model.sharedModel.changed.connect(this._onChanged, this);
    _cell.disposed.connect(() => Signal.clearData(this));
    this.look();
  }

  /** Most changes are after the first line, and do not matter. */
  private _onChanged(_: unknown, { sourceChange }: IChange): void {
    if (sourceChange && !((sourceChange[0]?.retain ?? 0) > this._head)) {
      this.look();
    }
  }

  look(): void {
    const source = this._cell.model.sharedModel.getSource();
    const isMode = this._isMode();
    this._head = headLength(source, isMode);
    const where = whereRuns(source, isMode);
    if (where !== this._where) {
      this._where = where;
      this._show(where);
      this._moved();
    }
  }

  private _show(where: Where): void {
    this._cell.toggleClass('jp-dist-CellOnRanks', where !== null);
    if (where === null) {
      this._node.remove();
      return;
    }
    const words = sayWhere(where);
    this._node.title = words;
    this._node.setAttribute('aria-label', words);
    this._node.style.background = stripes(listedRanks(where));
    this._cell.node.appendChild(this._node);
  }

  private readonly _node = document.createElement('div');
  private _where: Where = null;
  private _head = 0;
}

/** The colors of the ranks, from top to bottom; by default, that of the style sheet. */
function stripes(ranks: number[] | null): string {
  const share = 100 / (ranks?.length ?? 1);
  const stops = ranks?.map(
    (rank, index) =>
      `var(--jp-dist-rank-${colourOf(rank)}) ${index * share}% ${(index + 1) * share}%`
  );
  return stops ? `linear-gradient(${stops.join(', ')})` : '';
}
