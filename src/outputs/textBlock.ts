import { trans } from '../model/trans';
import { element } from '../ui/element';
import type { Lines, Tab } from './lines';
import { LongText } from './longText';
import { addRow, isSameRow, type Drawing, type IRow } from './row';

/** Text with more lines or characters is long. */
const FLOWING_LINES = 200;
const FLOWING_SIZE = 50_000;

/** The text of consecutive outputs in one tab. Long text is in a box that scrolls. */
export class TextBlock {
  constructor(
    private readonly _drawing: Drawing,
    private readonly _follows: boolean
  ) {
    this.node.className = 'jp-dist-TextBlock';
  }

  readonly node = document.createElement('div');

  dispose(): void {
    this._long?.dispose();
    this.node.remove();
  }

  draw(parts: readonly Lines[], tab: Tab): void {
    let lines = 0;
    let size = 0;
    for (const part of parts) {
      const rows = part.rows(tab).length;
      lines += rows;
      size += rows && part.size;
    }
    if (lines > FLOWING_LINES || size > FLOWING_SIZE) {
      this._scroll(parts, tab, lines);
    } else {
      this._flow(parts, tab);
    }
  }

  private _scroll(parts: readonly Lines[], tab: Tab, lines: number): void {
    this._redraw = () => this._scroll(parts, tab, lines);
    if (!this._long) {
      this._long = new LongText(this._drawing, this._follows);
      this._filter = new LineFilter(() => this._redraw());
      this._rows = [];
      this.node.replaceChildren(this._filter.node, this._long.node);
    }
    const found = this._long.show(parts, tab, this._filter?.words ?? '');
    this._filter?.count(found, lines);
  }

  private _flow(parts: readonly Lines[], tab: Tab): void {
    if (this._long) {
      this._long.dispose();
      this._filter?.node.remove();
      this._long = this._filter = null;
    }
    if (tab !== this._tab) {
      this._tab = tab;
      this._rows = [];
      this.node.replaceChildren();
    }
    const rows = grouped(parts, tab);
    let same = 0;
    while (
      same < rows.length &&
      same < this._rows.length &&
      isSameRow(rows[same], this._rows[same])
    ) {
      same += 1;
    }
    while (this.node.children.length > same) {
      this.node.lastElementChild?.remove();
    }
    for (const row of rows.slice(same)) {
      addRow(this.node, row, this._drawing, tab === null);
    }
    this._rows = rows;
  }

  private _rows: IRow[] = [];
  private _tab: Tab = null;
  private _long: LongText | null = null;
  private _filter: LineFilter | null = null;
  private _redraw = (): void => undefined;
}

/** Lines of the same ranks are one row, so that they are selected and wrapped as usual. */
function grouped(parts: readonly Lines[], tab: Tab): IRow[] {
  const rows: IRow[] = [];
  for (const part of parts) {
    for (const line of part.rows(tab)) {
      const owner = tab === null ? part.owner(line) : null;
      const last = rows[rows.length - 1];
      if (last?.owner === owner && last.isError === part.isError) {
        last.text += `\n${part.text(line)}`;
      } else {
        rows.push({ owner, isError: part.isError, text: part.text(line) });
      }
    }
  }
  return rows;
}

/** Filters the lines of long text: the browser's search finds only lines that are in the page. */
class LineFilter {
  constructor(changed: () => void) {
    this.node.className = 'jp-dist-LineFilter';
    // The notebook would take the keys.
    this.node.dataset.lmSuppressShortcuts = 'true';
    const label = trans.__('Filter lines');
    this._field = element(this.node, 'jp-mod-styled', 'input', {
      type: 'search',
      placeholder: label,
      'aria-label': label
    });
    this._field.addEventListener('input', changed);
    this._field.addEventListener('keydown', event => {
      if (event.key === 'Escape' && this.words) {
        event.stopPropagation();
        this._field.value = '';
        changed();
      }
    });
    this._count = element(this.node, '', 'span', { role: 'status' });
  }

  readonly node = document.createElement('div');

  /** What lines must contain, in lower case; empty for all lines. */
  get words(): string {
    return this._field.value.toLowerCase();
  }

  count(found: number, all: number): void {
    const text = this.words
      ? trans.__('%1 of %2 lines', found, all)
      : trans._n('%1 line', '%1 lines', all);
    // Without a filter, the number changes with each new line.
    this._count.setAttribute('aria-live', this.words ? 'polite' : 'off');
    if (this._count.textContent !== text) {
      this._count.textContent = text;
    }
  }

  private readonly _field: HTMLInputElement;
  private readonly _count: HTMLElement;
}
