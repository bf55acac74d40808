import { Clipboard, DOMUtils } from '@jupyterlab/apputils';
import { OutputArea } from '@jupyterlab/outputarea';
import type { IRenderMime } from '@jupyterlab/rendermime';
import { copyIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

import { trans } from '../model/trans';
import { element } from '../ui/element';
import { HEADER, readHeader } from './item';
import type { Tab } from './lines';
import { OutputView, type ITabBar, type ITabs } from './outputView';

/** With so many ranks, marked tabs may be out of sight, so they are counted. */
const MANY = 12;
const FAILED = '●';
const ODD = '○';

/** Draws the header as tabs above the outputs of a cell on several ranks. */
export class TabBar extends Widget implements IRenderMime.IRenderer, ITabBar {
  constructor() {
    super();
    this.addClass('jp-dist-OutputTabs');
    const bar = element(this.node, 'jp-dist-OutputTabs-bar');
    this._list = element(bar, 'jp-dist-OutputTabs-list', 'div', {
      role: 'tablist',
      'aria-label': trans.__('Output of ranks'),
      // The notebook would take the arrow keys.
      'data-lm-suppress-shortcuts': 'true'
    });
    this._list.addEventListener('keydown', event => this._onKey(event));
    this._marked = element(bar, 'jp-dist-OutputTabs-marked', 'button', {
      type: 'button',
      title: trans.__('Next marked rank')
    });
    this._marked.addEventListener('click', () => this._chooseMarked());
    const label = trans.__('Copy all of this tab');
    const copy = element(bar, 'jp-dist-OutputTabs-copy', 'button', {
      type: 'button',
      title: label,
      'aria-label': label
    });
    copyIcon.element({ container: copy, height: '14px', width: '14px' });
    copy.addEventListener('click', () => {
      Clipboard.copyToSystem(this._view?.copy() ?? '');
    });
    this._panel = element(this.node, '', 'div', {
      id: DOMUtils.createDomID(),
      role: 'tabpanel'
    });
    this._note = element(this._panel, 'jp-dist-OutputTabs-note');
    this._note.hidden = true;
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    // An output area makes this widget before it inserts it.
    await Promise.resolve();
    const area = areaOf(this);
    const header = readHeader(model.data[HEADER]);
    // Below an invalid header, outputs are drawn as usual.
    this.node.hidden = header === null;
    this._view = area && OutputView.of(area, header !== null);
    if (header) {
      this._view?.begin(header, this);
    } else {
      this._view?.end(this);
    }
  }

  dispose(): void {
    this._view?.end(this);
    super.dispose();
  }

  /** Boxes that were not in the page have lost their scroll position. */
  protected onAfterAttach(): void {
    this._view?.update();
  }

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
      this._marked.replaceChildren();
      parts.forEach(([mark, text], index) => {
        this._marked.append(index ? '  ' : '');
        addMark(this._marked, mark);
        this._marked.append(` ${text}`);
      });
    }
    this._marked.hidden = parts.length === 0;
  }

  /** For assistive technology, the outputs, which are elsewhere in the page, are in the tab's panel. */
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
    const button = element(this._list, 'jp-dist-OutputTab', 'button', {
      type: 'button',
      role: 'tab',
      'aria-controls': this._panel.id,
      id: `${this._panel.id}-${index}`
    });
    element(button, '', 'span');
    button.addEventListener('click', () => this._choose(index));
    return button;
  }

  private _choose(index: number): void {
    this._view?.choose(this._tabs[index]);
    const button = this._button(index);
    button.focus();
    // `focus` may leave a part of it out of sight.
    button.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

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

  private readonly _list: HTMLElement;
  private readonly _marked: HTMLElement;
  private readonly _panel: HTMLElement;
  private readonly _note: HTMLElement;
  private _view: OutputView | null = null;
  private _tabs: Tab[] = [null];
  private _current: Tab = null;
  private _marks: number[] = [];
}

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
      addMark(words, mark);
    }
  }
}

/** The label says it in words. */
function addMark(parent: Element, mark: string): void {
  const node = element(parent, 'jp-dist-OutputTab-mark', 'span', {
    'aria-hidden': 'true'
  });
  node.classList.toggle('jp-mod-failed', mark === FAILED);
  node.textContent = mark;
}
