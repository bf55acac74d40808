import type { OutputArea } from '@jupyterlab/outputarea';
import type { Panel, Widget } from '@lumino/widgets';

import { colourOf } from '../ui/meters';
import type { Item } from './item';
import { onlyRank, type IOwner } from './labels';
import type { Lines, Tab } from './lines';
import { addGutter, writeRanks } from './row';
import { TextBlock } from './textBlock';

const HIDDEN = 'jp-dist-mod-hidden';
const BESIDE = 'jp-dist-mod-labelled';
const GRID = 'jp-dist-mod-grid';
const FIGURE = 'jp-dist-mod-figure';

type Text = Extract<Item, { kind: 'text' }>;

/**
 * Lays out an output area: consecutive text is drawn in one block, in the place of the first output;
 * outputs that are not in the tab are hidden.
 */
export class Layout {
  constructor(private readonly _area: OutputArea) {
    this._limit = _area.maxNumberOutputs;
  }

  clear(): void {
    this._blocks.forEach(block => block.dispose());
    this._blocks.clear();
  }

  /** Draw a tab; answers whether it has output. */
  draw(
    items: readonly Item[],
    tab: Tab,
    failed: Record<string, string>
  ): boolean {
    this._makeRoom(items);
    const figures = figuresIn(tab === null ? items : []);
    this._arrange(figures);
    const used = new Set<Text>();
    let isAny = false;
    let owner: IOwner | null = null;
    for (let index = 0; index < items.length; index++) {
      const item = items[index];
      if (item.kind === 'text') {
        const first = index;
        const parts = [item.lines];
        for (
          let other = items[index + 1];
          other?.kind === 'text';
          other = items[index + 1]
        ) {
          parts.push(other.lines);
          this._show(++index, false);
        }
        used.add(item);
        isAny = this._drawText(first, item, parts, tab) || isAny;
      } else if (item.kind === 'label') {
        owner = item.owner;
        this._drawLabel(index, owner, tab === null && !figures.has(index + 1));
        continue;
      } else if (item.kind === 'other') {
        const isShown = isIn(tab, owner, failed);
        this._show(index, isShown);
        const isBeside = tab === null && owner !== null && !figures.has(index);
        this._panel(index)?.toggleClass(BESIDE, isBeside);
        isAny = isAny || isShown;
      }
      owner = null;
    }
    for (const [item, block] of this._blocks) {
      if (!used.has(item)) {
        block.dispose();
        this._blocks.delete(item);
      }
    }
    return isAny;
  }

  /** The visible outputs, without the header. */
  shown(bar: Widget): Widget[] {
    return this._area.widgets.filter(
      output => !output.hasClass(HIDDEN) && !output.contains(bar)
    );
  }

  private _drawText(
    index: number,
    item: Text,
    parts: readonly Lines[],
    tab: Tab
  ): boolean {
    const host = this._host(index);
    let block = this._blocks.get(item);
    if (!block) {
      // A notebook from a file is read from its beginning.
      const follows = Boolean(this._area.future);
      block = new TextBlock(this._area.rendermime, follows);
      this._blocks.set(item, block);
    }
    if (host && block.node.parentElement !== host) {
      host.classList.add('jp-dist-TextHost');
      host.replaceChildren(block.node);
    }
    const isShown = parts.some(part => part.rows(tab).length > 0);
    // First, because hidden text has no height.
    this._show(index, isShown);
    block.draw(parts, tab);
    return isShown;
  }

  private _arrange(figures: ReadonlyMap<number, IFigure>): void {
    const { node, widgets } = this._area;
    this._area.toggleClass(GRID, figures.size > 0);
    if (figures.size === 0 && !this._isGrid) {
      return;
    }
    this._isGrid = figures.size > 0;
    const columns = Math.max(...[...figures.values()].map(({ run }) => run));
    node.style.setProperty('--jp-dist-figures', `${columns}`);
    widgets.forEach((output, index) => {
      const figure = figures.get(index);
      const { style, dataset } = output.node;
      output.toggleClass(FIGURE, figure !== undefined);
      style.order = this._isGrid ? `${figure?.place ?? index}` : '';
      if (!figure) {
        delete dataset.ranks;
        return;
      }
      dataset.ranks = writeRanks(figure.owner.label);
      const rank = onlyRank(figure.owner);
      const colour = `var(--jp-dist-rank-${colourOf(rank ?? 0)})`;
      style.setProperty('--jp-dist-colour', rank === null ? '' : colour);
    });
  }

  private _drawLabel(
    index: number,
    owner: IOwner | null,
    isShown: boolean
  ): void {
    const host = this._host(index);
    if (host && owner && host.dataset.ranks !== owner.label) {
      host.dataset.ranks = owner.label;
      host.classList.add('jp-dist-Label');
      host.replaceChildren();
      addGutter(host, owner);
    }
    this._show(index, isShown);
  }

  /** JupyterLab limits how many outputs it draws; we do not count text. */
  private _makeRoom(items: readonly Item[]): void {
    const drawn = this._area.maxNumberOutputs;
    if (items.length <= drawn || !this._panel(drawn)) {
      return;
    }
    let others = 0;
    let last = 0;
    items.forEach((item, index) => {
      others += item.kind === 'other' ? 1 : 0;
      if (item.kind !== 'text' || items[index - 1]?.kind !== 'text') {
        last = index;
      }
    });
    const room = this._limit + items.length - others;
    if (last >= drawn && room > drawn) {
      this._area.maxNumberOutputs = room;
    }
    if (last < drawn) {
      this._show(drawn, false); // the button for more
    }
  }

  private _panel(index: number): Widget | undefined {
    return this._area.widgets[index];
  }

  private _show(index: number, isShown: boolean): void {
    this._panel(index)?.toggleClass(HIDDEN, !isShown);
  }

  private _host(index: number): HTMLElement | null {
    const widgets = (this._panel(index) as Panel | undefined)?.widgets ?? [];
    return widgets.find(widget => 'renderModel' in widget)?.node ?? null;
  }

  private readonly _limit: number;
  private _isGrid = false;
  private readonly _blocks = new Map<Text, TextBlock>();
}

/** An output without ranks is mostly an error: it is shown for failed ranks. */
function isIn(
  tab: Tab,
  owner: IOwner | null,
  failed: Record<string, string>
): boolean {
  if (tab === null) {
    return true;
  }
  if (owner) {
    return owner.ranks.has(tab);
  }
  return tab in failed || Object.keys(failed).length === 0;
}

interface IFigure {
  owner: IOwner;
  /** Its place among all outputs. */
  place: number;
  run: number;
}

/**
 * The labelled images in a sequence, by their index among the outputs. Their places are sorted: the first
 * image of each rank, in the order of ranks, then the second one of each.
 */
function figuresIn(items: readonly Item[]): Map<number, IFigure> {
  const figures = new Map<number, IFigure>();
  let run: { index: number; owner: IOwner; nth: number }[] = [];
  const end = () => {
    const places = run.map(({ index }) => index);
    const sorted = [...run].sort(
      (one, other) =>
        one.nth - other.nth || firstRank(one.owner) - firstRank(other.owner)
    );
    if (run.length > 1) {
      sorted.forEach(({ index, owner }, i) =>
        figures.set(index, { owner, place: places[i], run: run.length })
      );
    }
    run = [];
  };
  let owner: IOwner | null = null;
  items.forEach((item, index) => {
    if (item.kind === 'label') {
      owner = item.owner;
      return;
    }
    const of = owner;
    owner = null;
    if (item.kind === 'other' && of && isImage(item)) {
      const nth = run.filter(one => one.owner === of).length;
      run.push({ index, owner: of, nth });
    } else {
      end();
    }
  });
  end();
  return figures;
}

function isImage({ model }: Item): boolean {
  return Object.keys(model.data).some(type => type.startsWith('image/'));
}

function firstRank({ ranks }: IOwner): number {
  return Math.min(...ranks);
}
