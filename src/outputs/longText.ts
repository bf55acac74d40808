import { trans } from '../model/trans';
import { element } from '../ui/element';
import type { Lines, Tab } from './lines';
import { addRow, isSameRow, type Drawing, type IRow } from './row';

const NO_LINKS = { resolver: null, linkHandler: null };
/** Rows drawn above and below what can be seen. */
const MARGIN = 20;
/** Browsers draw no taller boxes; beyond this, a pixel of the scroll bar is more than a pixel of text. */
const TALLEST = 8_000_000;
/** Characters of a line that are drawn; the complete line is copied. */
const LONGEST = 10_000;

/** Many lines in a box that scrolls. Only those that can be seen are in the page. */
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
    this.node.addEventListener('scroll', this._onScroll);
    // Also when it is inserted again, without its scroll position.
    this._observer = new ResizeObserver(() => this._restore());
    this._observer.observe(this.node);
  }

  readonly node = document.createElement('div');

  dispose(): void {
    this._observer.disconnect();
    this.node.removeEventListener('scroll', this._onScroll);
    this.node.remove();
  }

  /** Show the lines of a tab that contain some words; answers how many there are. */
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

  /** Restore the scroll position, or scroll to the end. */
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
    // New lines at the end do not count as scrolled away.
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
    const before = this._drawn;
    this._drawn = new Map();
    rows.forEach((row, index) => {
      const known = before.get(first + index);
      const isKept = known && isSameRow(known.row, row);
      const drawn = isKept ? known : { row, node: this._add(row) };
      this._drawn.set(first + index, drawn);
    });
    const nodes = [...this._drawn.values()].map(({ node }) => node);
    const kept = new Set<Element>(nodes);
    [...this._window.children].forEach(node => kept.has(node) || node.remove());
    nodes.forEach((node, index) => {
      // Other nodes are not moved: they may be selected.
      if (this._window.children[index] !== node) {
        this._window.insertBefore(node, this._window.children[index]);
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

  private _add(row: IRow): HTMLElement {
    // For each link to a path, a request would be sent.
    const drawing = { ...NO_LINKS, sanitizer: this._drawing.sanitizer };
    return addRow(this._window, row, drawing, this._tab === null);
  }

  private _measure(): number {
    const row = this._add({ owner: null, isError: false, text: 'x' });
    const { height } = row.getBoundingClientRect();
    row.remove();
    return height;
  }

  private readonly _all = element(this.node, 'jp-dist-LongText-all');
  private readonly _window = element(this._all, 'jp-dist-LongText-window');
  private readonly _observer: ResizeObserver;
  private _parts: readonly Lines[] = [];
  /** The number of lines up to the end of each part. */
  private _ends: number[] = [];
  private _count = 0;
  private _tab: Tab = null;
  private _words = '';
  private _rowHeight = 0;
  /** The scroll position, also while it is not in the page. */
  private _top = 0;
  /** Whether it scrolls to its end when lines are added. */
  private _follows: boolean;
  private _drawn = new Map<number, { row: IRow; node: HTMLElement }>();
}
