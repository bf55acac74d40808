import { Clipboard, DOMUtils } from '@jupyterlab/apputils';
import { OutputArea } from '@jupyterlab/outputarea';
import type { IRenderMime } from '@jupyterlab/rendermime';
import { copyIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import { trans } from '../model/trans';
import { HEADER, readHeader } from './item';
import type { Tab } from './lines';
import { OutputView } from './outputView';
import type { ITabBar, ITabs } from './outputView';

/** From so many ranks on the marked ones are counted: their tabs may be out of sight. */
const MANY = 12;
const FAILED = '●';
const ODD = '○';

/**
 * The tabs above the outputs of a cell on several ranks: what the header looks like.
 */
export class TabBar extends Widget implements IRenderMime.IRenderer, ITabBar {
  constructor() {
    super();
    this.addClass('jp-dist-OutputTabs');
    const bar = document.createElement('div');
    bar.className = 'jp-dist-OutputTabs-bar';
    this._list.className = 'jp-dist-OutputTabs-list';
    this._list.setAttribute('role', 'tablist');
    this._list.setAttribute('aria-label', trans.__('Output of ranks'));
    // The notebook would take the arrow keys.
    this._list.dataset.lmSuppressShortcuts = 'true';
    this._list.addEventListener('keydown', event => this._onKey(event));
    this._marked.type = 'button';
    this._marked.className = 'jp-dist-OutputTabs-marked';
    this._marked.title = trans.__('Next marked rank');
    this._marked.addEventListener('click', () => this._chooseMarked());
    bar.append(this._list, this._marked, this._makeCopyButton());
    this._note.className = 'jp-dist-OutputTabs-note';
    this._note.hidden = true;
    this._panel.id = DOMUtils.createDomID();
    this._panel.setAttribute('role', 'tabpanel');
    this._panel.append(this._note);
    this.node.append(bar, this._panel);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    // An output area makes us before it puts us into itself.
    await Promise.resolve();
    const area = areaOf(this);
    const header = readHeader(model.data[HEADER]);
    // Without a header that can be read, the outputs below it are text like any other.
    this.node.hidden = header === null;
    if (!area) {
      return;
    }
    this._view = header && OutputView.of(area, true);
    if (header) {
      this._view?.begin(header, this);
    } else {
      OutputView.of(area)?.end(this);
    }
  }

  dispose(): void {
    this._view?.end(this);
    super.dispose();
  }

  /** Boxes that were out of the page have forgotten how far they were scrolled. */
  protected onAfterAttach(): void {
    this._view?.update();
  }

  /** Show the tabs; what is there already stays, and keeps the focus. */
  draw({ ranks, tab, failed, odd, isEmpty, outputs }: ITabs): void {
    const all: Tab[] = [null, ...ranks];
    while (this._list.children.length > all.length) {
      this._list.lastElementChild?.remove();
    }
    this._tabs = all.map((value, index) => {
      const button = this._button(index);
      const isChosen = value === tab;
      const error = value === null ? undefined : failed[value];
      const isOdd = value !== null && odd.has(value);
      button.setAttribute('aria-selected', `${isChosen}`);
      button.tabIndex = isChosen ? 0 : -1;
      setText(
        button,
        value === null ? trans.__('Merged') : `${value}`,
        error !== undefined ? FAILED : isOdd ? ODD : ''
      );
      const words = this._describe(value, error, isOdd);
      button.title = words;
      button.setAttribute('aria-label', words);
      return value;
    });
    this._current = tab;
    this._count(ranks, failed, odd);
    this._own(outputs);
    this._note.hidden = !isEmpty || tab === null;
    this._note.textContent = this._note.hidden
      ? ''
      : trans.__('Rank %1 has no output.', tab);
  }

  /** Say how many ranks are marked. */
  private _count(
    ranks: readonly number[],
    failed: Record<string, string>,
    odd: ReadonlySet<number>
  ): void {
    const isMarked = (rank: number) => rank in failed || odd.has(rank);
    this._marks = ranks.length < MANY ? [] : ranks.filter(isMarked);
    const bad = this._marks.filter(rank => rank in failed).length;
    const other = this._marks.length - bad;
    const parts: [string, string][] = [];
    if (bad > 0) {
      parts.push([FAILED, trans._n('%1 failed', '%1 failed', bad)]);
    }
    if (other > 0) {
      parts.push([ODD, trans._n('%1 differs', '%1 differ', other)]);
    }
    const words = parts.map(part => part.join(' ')).join('  ');
    if (this._marked.textContent !== words) {
      this._marked.replaceChildren(
        ...parts.flatMap(([mark, text], index) => [
          index ? '  ' : '',
          makeMark(mark),
          ` ${text}`
        ])
      );
    }
    this._marked.hidden = parts.length === 0;
  }

  /**
   * Outputs are not below us in the page, where the area has them, but are so for assistive
   * technology: what the tab shows is one panel.
   */
  private _own(outputs: readonly Widget[]): void {
    const ids = outputs.map(output => (output.id ||= DOMUtils.createDomID()));
    const chosen = this._button(this._tabs.indexOf(this._current)).id;
    setAttribute(this._panel, 'aria-labelledby', chosen);
    setAttribute(this._panel, 'aria-owns', ids.join(' '));
  }

  private _describe(value: Tab, error: string | undefined, isOdd: boolean) {
    if (value === null) {
      return trans.__('Merged');
    }
    if (error !== undefined) {
      return trans.__('Rank %1, failed: %2', value, error);
    }
    return isOdd
      ? trans.__('Rank %1, differs from most ranks', value)
      : trans.__('Rank %1', value);
  }

  private _button(index: number): HTMLButtonElement {
    const known = this._list.children[index];
    if (known instanceof HTMLButtonElement) {
      return known;
    }
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jp-dist-OutputTab';
    button.setAttribute('role', 'tab');
    button.setAttribute('aria-controls', this._panel.id);
    button.id = `${this._panel.id}-${index}`;
    button.append(document.createElement('span'));
    button.addEventListener('click', () => this._choose(index));
    return this._list.appendChild(button);
  }

  private _choose(index: number): void {
    this._view?.choose(this._tabs[index]);
    const button = this._button(index);
    button.focus();
    // The focus alone is content with an edge of it.
    button.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  /** The first marked rank behind the current one, or else of all. */
  private _chooseMarked(): void {
    const current = this._current ?? -1;
    const next = this._marks.find(rank => rank > current) ?? this._marks[0];
    this._choose(this._tabs.indexOf(next));
  }

  private _onKey(event: KeyboardEvent): void {
    const last = this._tabs.length - 1;
    const at = this._tabs.indexOf(this._current);
    const goals: Record<string, number> = {
      ArrowLeft: at === 0 ? last : at - 1,
      ArrowRight: at === last ? 0 : at + 1,
      Home: 0,
      End: last
    };
    if (event.key in goals && !event.altKey && !event.ctrlKey) {
      event.preventDefault();
      event.stopPropagation();
      this._choose(goals[event.key]);
    }
  }

  private _makeCopyButton(): HTMLElement {
    const button = document.createElement('button');
    const label = trans.__('Copy all of this tab');
    button.type = 'button';
    button.className = 'jp-dist-OutputTabs-copy';
    button.title = label;
    button.setAttribute('aria-label', label);
    copyIcon.element({ container: button, height: '14px', width: '14px' });
    button.addEventListener('click', () => {
      Clipboard.copyToSystem(this._view?.copy() ?? '');
    });
    return button;
  }

  private readonly _list = document.createElement('div');
  private readonly _marked = document.createElement('button');
  private readonly _panel = document.createElement('div');
  private readonly _note = document.createElement('div');
  private _view: OutputView | null = null;
  private _tabs: Tab[] = [null];
  private _current: Tab = null;
  private _marks: number[] = [];
}

/** The output area that a renderer is in. */
export function areaOf(widget: Widget): OutputArea | null {
  let { parent } = widget;
  while (parent && !(parent instanceof OutputArea)) {
    parent = parent.parent;
  }
  return parent;
}

function setAttribute(node: Element, name: string, value: string): void {
  if (node.getAttribute(name) !== value) {
    node.setAttribute(name, value);
  }
}

function setText(button: HTMLButtonElement, name: string, mark: string): void {
  const words = button.firstElementChild;
  if (words && words.textContent !== name + mark) {
    words.textContent = name;
    if (mark) {
      words.append(makeMark(mark));
    }
  }
}

function makeMark(mark: string): HTMLElement {
  const node = document.createElement('span');
  node.className = 'jp-dist-OutputTab-mark';
  node.classList.toggle('jp-mod-failed', mark === FAILED);
  node.textContent = mark;
  // Words say it, too.
  node.setAttribute('aria-hidden', 'true');
  return node;
}
