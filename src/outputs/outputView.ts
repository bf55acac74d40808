import type { IOutputAreaModel, OutputArea } from '@jupyterlab/outputarea';
import type { IOutputModel } from '@jupyterlab/rendermime';
import { Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import { kindOf, makeItem, textOf, type IHeader, type Item } from './item';
import { Owners, ranksOf, type IOwner } from './labels';
import { Layout } from './layout';
import type { Tab } from './lines';

/** After so many milliseconds without output, differing ranks are marked: a late rank may catch up. */
const CALM = 1000;

const views = new WeakMap<OutputArea, OutputView>();

/** The widest gutter, in characters. */
const WIDEST = 12;

export interface ITabs {
  ranks: readonly number[];
  tab: Tab;
  failed: Record<string, string>;
  odd: ReadonlySet<number>;
  isEmpty: boolean;
  outputs: readonly Widget[];
}

export interface ITabBar extends Widget {
  draw(tabs: ITabs): void;
}

interface ITextChange {
  type: 'set' | 'insert' | 'remove';
  start: number;
  value: string;
}

/** Shows the outputs of a cell on several ranks, in one view of the cell. */
export class OutputView {
  private constructor(private readonly _area: OutputArea) {
    _area.model.changed.connect(this._onChanged, this);
    _area.disposed.connect(this._onDisposed, this);
    this._layout = new Layout(_area);
  }

  /** The view of an output area; it remains, with its tab, when the cell runs again. */
  static of(area: OutputArea, isToMake = false): OutputView | null {
    let view = views.get(area);
    if (!view && isToMake) {
      view = new OutputView(area);
      views.set(area, view);
    }
    return view ?? null;
  }

  begin(header: IHeader, bar: ITabBar): void {
    const isNew = this._bar !== bar;
    this._header = header;
    this._bar = bar;
    this._ranks = ranksOf(header.ranks) ?? [];
    if (this._tab !== null && !this._ranks.includes(this._tab)) {
      this._tab = null;
    }
    if (isNew) {
      this._read();
    }
    this.update();
  }

  end(bar: ITabBar): void {
    if (this._bar === bar) {
      this._header = this._bar = null;
      this._forget();
    }
  }

  choose(tab: Tab): void {
    if (tab !== this._tab) {
      this._tab = tab;
      this._drawNow();
    }
  }

  /** Whether an output is drawn here, instead of by its renderer. */
  draws(model: IOutputModel): boolean {
    return this._header !== null && ['text', 'label'].includes(kindOf(model));
  }

  copy(): string {
    const parts = this._items.map(item =>
      item.kind === 'text' ? item.lines.copy(this._tab) : ''
    );
    return parts.filter(part => part).join('\n');
  }

  /** Draw before the next frame. */
  update(): void {
    this._frame ??= requestAnimationFrame(() => this._drawNow());
  }

  private _drawNow(): void {
    if (this._frame !== null) {
      cancelAnimationFrame(this._frame);
      this._frame = null;
    }
    if (this._header && this._bar && !this._area.isDisposed) {
      const { failed } = this._header;
      const width = Math.min(this._owners.longest, WIDEST);
      this._area.node.style.setProperty('--jp-dist-gutter', `${width}`);
      const isEmpty = !this._layout.draw(this._items, this._tab, failed);
      this._bar.draw({
        ranks: this._ranks,
        tab: this._tab,
        failed,
        odd: this._odd,
        isEmpty,
        outputs: this._layout.shown(this._bar)
      });
    }
  }

  private _onChanged(
    _: IOutputAreaModel,
    change: IOutputAreaModel.ChangedArgs
  ): void {
    if (!this._header) {
      return;
    }
    if (change.type === 'add') {
      const items = change.newValues.map(model => this._follow(model));
      this._items.splice(change.newIndex, 0, ...items);
    } else if (change.type === 'set') {
      change.newValues.forEach((model, i) =>
        this._set(change.newIndex + i, model)
      );
    } else {
      this._read();
    }
    this._changed();
  }

  /** Text keeps its block; JupyterLab 4.2 sets a stream again as it grows. */
  private _set(index: number, model: IOutputModel): void {
    const item = this._items[index];
    const isStream = model.streamText !== undefined;
    if (isStream && item?.model === model) {
      return; // its text emits changes
    }
    if (item?.kind === 'text' && !isStream && kindOf(model) === 'text') {
      const [before, text] = [textOf(item.model), textOf(model)];
      if (text.startsWith(before)) {
        item.lines.append(text.slice(before.length));
      } else {
        item.lines.set(text);
      }
      item.model = model;
    } else {
      this._items[index] = this._follow(model);
    }
  }

  private _follow(model: IOutputModel): Item {
    const size = this._header?.world_size ?? 1;
    const item = makeItem(model, this._owners, size);
    if (item.kind === 'text' && model.streamText) {
      const append = (_: unknown, { type, start, value }: ITextChange) => {
        if (type === 'insert' && start === item.lines.size) {
          item.lines.append(value);
        } else if (type === 'remove') {
          item.lines.cut(start);
        } else {
          item.lines.set(textOf(model));
        }
        this._changed();
      };
      model.streamText.changed.connect(append, this._texts);
    }
    return item;
  }

  private _read(): void {
    this._forget();
    this._owners.of(this._header?.ranks ?? '0');
    const { model } = this._area;
    for (let index = 0; index < model.length; index++) {
      this._items.push(this._follow(model.get(index)));
    }
    this._changed();
  }

  private _forget(): void {
    Signal.disconnectReceiver(this._texts);
    this._items = [];
    this._owners = new Owners();
    this._odd = new Set();
    this._layout.clear();
  }

  private _changed(): void {
    this.update();
    window.clearTimeout(this._calm);
    this._calm = window.setTimeout(() => {
      this._odd = oddRanks(this._ranks, this._seen());
      this.update();
    }, CALM);
  }

  private _seen(): Set<IOwner> {
    const seen = new Set<IOwner>();
    for (const item of this._items) {
      if (item.kind === 'label' && item.owner) {
        seen.add(item.owner);
      } else if (item.kind === 'text') {
        item.lines.counts.forEach((count, owner) => count && seen.add(owner));
      }
    }
    return seen;
  }

  private _onDisposed(): void {
    window.clearTimeout(this._calm);
    this._header = this._bar = null;
    this._forget();
    Signal.clearData(this);
    views.delete(this._area);
  }

  private readonly _layout: Layout;
  private _header: IHeader | null = null;
  private _bar: ITabBar | null = null;
  private _ranks: number[] = [];
  private _tab: Tab = null;
  private _items: Item[] = [];
  /** Receives the signals of their texts. */
  private readonly _texts = {};
  private _owners = new Owners();
  private _odd = new Set<number>();
  private _frame: number | null = null;
  private _calm = 0;
}

/** The ranks whose output differs from that of most ranks; none unless more than half of them agree. */
export function oddRanks(
  ranks: readonly number[],
  owners: Iterable<IOwner>
): Set<number> {
  const parts = new Map<number, string[]>(ranks.map(rank => [rank, []]));
  for (const owner of owners) {
    for (const rank of owner.ranks) {
      parts.get(rank)?.push(owner.label);
    }
  }
  const alike = new Map<string, number[]>();
  for (const [rank, labels] of parts) {
    const key = labels.sort().join(' ');
    alike.set(key, [...(alike.get(key) ?? []), rank]);
  }
  for (const group of alike.values()) {
    if (group.length > ranks.length / 2) {
      return new Set(ranks.filter(rank => !group.includes(rank)));
    }
  }
  return new Set();
}
