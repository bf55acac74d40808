import { trans } from '../model/trans';
import type { Lines, Tab } from './lines';
import { isSameRow, makeRow } from './row';
import type { Drawing, IRow } from './row';

const NO_LINKS = { resolver: null, linkHandler: null };
/** Rows drawn above and below what can be seen. */
const MARGIN = 20;
/** Browsers draw no taller boxes; beyond this the scroll bar stands for more than one row. */
const TALLEST = 8_000_000;
/** Characters of a line that are drawn; all of it is copied. */
const LONGEST = 10_000;

/**
 * Many lines in a box that scrolls. Only those that can be seen are in the page.
 */
export class LongText {
  constructor(
    private readonly _drawing: Drawing,
    follows: boolean
  ) {
    this._follows = follows;
    this.node.className = 'jp-dist-LongText';
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'group');
    // The notebook would take the arrow keys.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._all.className = 'jp-dist-LongText-all';
    this._window.className = 'jp-dist-LongText-window';
    this._all.append(this._window);
    this.node.append(this._all);
    this.node.addEventListener('scroll', this._onScroll);
    // Also when it is put into the page again, where it has forgotten how far it was scrolled.
    this._observer = new ResizeObserver(() => this._restore());
    this._observer.observe(this.node);
  }

  readonly node = document.createElement('div');

  dispose(): void {
    this._observer.disconnect();
    this.node.removeEventListener('scroll', this._onScroll);
    this.node.remove();
  }

  /** Show the lines of a tab that have certain words; answers how many there are. */
  show(parts: readonly Lines[], tab: Tab, words: string): number {
    this._parts = parts;
    this._ends = [];
    this._count = 0;
    for (const part of parts) {
      this._count += part.found(tab, words).length;
      this._ends.push(this._count);
    }
    if (tab !== this._tab || words !== this._words) {
      this._tab = tab;
      this._words = words;
      this._top = 0;
      this._drawn.clear();
      this._window.replaceChildren();
    }
    const label = trans.__('Output, %1 lines', this._count);
    this.node.setAttribute('aria-label', label);
    this._restore();
    return this._count;
  }

  /** Scroll to where it was, or to the end, and draw. */
  private _restore(): void {
    const height = this.node.clientHeight;
    if (height === 0) {
      return; // not in the page
    }
    this._rowHeight ||= this._measure();
    const all = this._count * this._rowHeight;
    this._all.style.height = `${Math.min(all, TALLEST)}px`;
    if (this._follows) {
      this._top = Math.max(0, Math.min(all, TALLEST) - height);
    }
    if (Math.abs(this.node.scrollTop - this._top) >= 1) {
      this.node.scrollTop = this._top;
    }
    this._draw(height);
  }

  private readonly _onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = this.node;
    // Lines that have come since then do not count as scrolled away from.
    if (Math.abs(scrollTop - this._top) >= 1) {
      this._top = scrollTop;
      this._follows = scrollTop + clientHeight >= scrollHeight - 2;
    }
    this._draw(clientHeight);
  };

  private _draw(height: number): void {
    const all = this._count * this._rowHeight;
    const room = Math.min(all, TALLEST) - height;
    const above =
      all > TALLEST ? (this._top / room) * (all - height) : this._top;
    const first = Math.max(0, Math.floor(above / this._rowHeight) - MARGIN);
    const last = Math.min(
      this._count,
      Math.ceil((above + height) / this._rowHeight) + MARGIN
    );
    const rows = this._rows(first, last);
    const nodes = rows.map((row, index) => {
      const known = this._drawn.get(first + index);
      return known && isSameRow(known.row, row)
        ? known
        : { row, node: this._make(row) };
    });
    this._drawn = new Map(nodes.map((drawn, i) => [first + i, drawn]));
    const kept = new Set(nodes.map(({ node }) => node));
    for (const node of [...this._window.children]) {
      if (!kept.has(node as HTMLElement)) {
        node.remove();
      }
    }
    nodes.forEach(({ node }, index) => {
      // What is there already is not moved: it may be selected.
      if (this._window.children[index] !== node) {
        this._window.insertBefore(node, this._window.children[index] ?? null);
      }
    });
    const shift = this._top - above + first * this._rowHeight;
    this._window.style.transform = `translateY(${shift}px)`;
  }

  private _rows(first: number, last: number): IRow[] {
    const rows: IRow[] = [];
    let index = this._ends.findIndex(end => end > first);
    for (let row = first; row < last; row++) {
      while (row >= this._ends[index]) {
        index += 1;
      }
      const part = this._parts[index];
      const begin = index ? this._ends[index - 1] : 0;
      const line = part.found(this._tab, this._words)[row - begin];
      rows.push({
        owner: part.owner(line),
        isError: part.isError,
        text: this._shorten(part.text(line))
      });
    }
    return rows;
  }

  private _shorten(text: string): string {
    const more = text.length - LONGEST;
    return more > 0
      ? `${text.slice(0, LONGEST)}… ${trans.__('(%1 more characters)', more)}`
      : text;
  }

  private _make(row: IRow): HTMLElement {
    // The server is asked for each path, and there may be thousands.
    const drawing = { ...NO_LINKS, sanitizer: this._drawing.sanitizer };
    return makeRow(row, drawing, this._tab === null);
  }

  private _measure(): number {
    const row = this._make({ owner: null, isError: false, text: 'x' });
    this._window.append(row);
    const { height } = row.getBoundingClientRect();
    row.remove();
    return height;
  }

  private readonly _all = document.createElement('div');
  private readonly _window = document.createElement('div');
  private readonly _observer: ResizeObserver;
  private _parts: readonly Lines[] = [];
  /** How many lines there are up to the end of each part. */
  private _ends: number[] = [];
  private _count = 0;
  private _tab: Tab = null;
  private _words = '';
  private _rowHeight = 0;
  /** How far it is scrolled, also while it is not in the page. */
  private _top = 0;
  /** Whether it stays at its end when lines are added. */
  private _follows: boolean;
  private _drawn = new Map<number, { row: IRow; node: HTMLElement }>();
}
