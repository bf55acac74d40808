import type { Lines, Tab } from './lines';
import { LineFilter } from './lineFilter';
import { LongText } from './longText';
import { isSameRow, makeRow } from './row';
import type { Drawing, IRow } from './row';

/** Lines, and characters, up to which text flows in the notebook. */
const FLOWING_LINES = 200;
const FLOWING_SIZE = 50_000;

/**
 * Text of outputs that follow one another, in one tab. A little flows as text does in a notebook;
 * much is a box that scrolls.
 */
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

  /** Draw what has changed. */
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
      this.node.append(makeRow(row, this._drawing, tab === null));
    }
    this._rows = rows;
  }

  private _rows: IRow[] = [];
  private _tab: Tab = null;
  private _long: LongText | null = null;
  private _filter: LineFilter | null = null;
  private _redraw = (): void => undefined;
}

/** Lines of the same ranks are one row, so that they can be selected and wrap as usual. */
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
