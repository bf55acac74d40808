import { PathExt } from '@jupyterlab/coreutils';

import type { ICellRun } from '../model/cells';
import { trans } from '../model/trans';
import { sayCell, sayCells, type ICellWords } from './cellWords';
import { chipsIn, type IChip } from './chips';
import { CHIP, LANE, type ILabelledChip } from './scene';
import { element } from '../ui/element';
import type { TimelineModel } from './model';
import type { Scale } from './scale';

interface IShown {
  node: HTMLButtonElement;
  chip: IChip;
  key: string;
  words: ICellWords;
}

export interface ICellStripOptions {
  jump(cell: ICellRun): void;
  zoom(from: number, to: number): void;
}

/** The cells above the curves: buttons without a look, on top of the chips that the canvas shows. */
export class CellStrip {
  constructor(
    private readonly _parent: HTMLElement,
    private readonly _model: TimelineModel,
    private readonly _options: ICellStripOptions
  ) {
    _parent.setAttribute('role', 'group');
    _parent.setAttribute('aria-label', trans.__('Cells on ranks'));
    _parent.addEventListener('keydown', this._onKey);
  }

  get chips(): readonly ILabelledChip[] {
    return this._shown.map(({ chip, words }) => ({
      ...chip,
      parts: words.parts
    }));
  }

  /** The names of the lanes: those of their notebooks, if there are several. */
  get lanes(): readonly string[] {
    const paths: string[] = [];
    for (const { chip } of this._shown) {
      paths[chip.lane] = chip.cells[0].name;
    }
    return paths.length > 1
      ? paths.map(path => PathExt.basename(path))
      : [trans.__('cells')];
  }

  /** Show the cells on so many pixels of the page. */
  update(scale: Scale, width: number): void {
    const before = new Map(
      this._shown.map(shown => [shown.chip.cells[0].id, shown])
    );
    this._shown = chipsIn(this._model.runs, scale, [0, width]).map(chip => {
      const { id } = chip.cells[0];
      const shown = before.get(id) ?? this._make(chip);
      before.delete(id);
      this._place(shown, chip);
      return shown;
    });
    for (const { node } of before.values()) {
      node.remove();
    }
    if (!this._shown.some(({ node }) => node.tabIndex === 0)) {
      this._focusable(this._shown.at(-1)?.node);
    }
  }

  private _make(chip: IChip): IShown {
    const node = element(this._parent, 'jp-dist-Timeline-chip', 'button');
    node.type = 'button';
    node.tabIndex = -1;
    const shown = { node, chip, key: '', words: { parts: [], title: '' } };
    node.addEventListener('click', () => this._onClick(shown.chip));
    node.addEventListener('focus', () => this._focusable(node));
    return shown;
  }

  private _place(shown: IShown, chip: IChip): void {
    const { node } = shown;
    shown.chip = chip;
    node.style.left = `${chip.left}px`;
    node.style.width = `${chip.right - chip.left}px`;
    node.style.top = `${chip.lane * LANE + (LANE - CHIP) / 2}px`;
    // The words of finished cells do not change.
    const { now } = this._model;
    const time = chip.isRunning ? Math.floor(now - chip.cells[0].start) : '';
    const ranks = chip.cells.map(({ stretches }) => stretches.length).join();
    const key = `${ranks} ${time}`;
    if (key !== shown.key) {
      shown.key = key;
      shown.words = this._say(chip);
      const { title } = shown.words;
      if (node.title !== title) {
        node.title = title;
        node.setAttribute('aria-label', title);
      }
    }
  }

  private _say({ cells }: IChip): ICellWords {
    const { now, pools } = this._model;
    return cells.length > 1 ? sayCells(cells) : sayCell(cells[0], now, pools);
  }

  private _onClick({ cells }: IChip): void {
    if (cells.length === 1) {
      this._options.jump(cells[0]);
      return;
    }
    const [first, last] = [cells[0], cells[cells.length - 1]];
    const margin = Math.max(1, (last.start - first.start) / 4);
    this._options.zoom(first.start - margin, last.start + margin);
  }

  private _focusable(node: HTMLButtonElement | undefined): void {
    this._shown.forEach(other => (other.node.tabIndex = -1));
    if (node) {
      node.tabIndex = 0;
    }
  }

  private readonly _onKey = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const index = this._shown.findIndex(({ node }) => node === event.target);
    if (step && index >= 0) {
      this._shown[index + step]?.node.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  };

  private _shown: IShown[] = [];
}
