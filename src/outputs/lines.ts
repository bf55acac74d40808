import type { IOwner, LabelReader } from './labels';

// eslint-disable-next-line no-control-regex
const STYLE = /\x1b\[([\d;]*)m/g;
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b\[[^@-~]*[@-~]/g;

/** A rank, or null for the merged text. */
export type Tab = number | null;

/** The lines of one output. Each is read only once. */
export class Lines {
  constructor(
    private readonly _reader: LabelReader,
    readonly isError: boolean
  ) {}

  /** Characters, with labels. */
  size = 0;
  /** The number of lines of each owner. */
  readonly counts = new Map<IOwner, number>();

  append(text: string): void {
    const parts = text.split('\n');
    if (this._isOpen) {
      parts[0] = this._pop() + parts[0];
    }
    const rest = parts.pop() ?? '';
    for (const line of parts) {
      this._push(line);
      this.size += 1;
    }
    // It may go on: then `_pop` takes it out, and it is read again.
    this._isOpen = rest !== '';
    if (this._isOpen) {
      this._push(rest);
    }
  }

  /** Keep so many characters: a carriage return or a backspace has changed the rest. */
  cut(size: number): void {
    while (this.size > size) {
      const line = this._pop();
      if (this.size < size) {
        this.append(line.slice(0, size - this.size));
      }
    }
  }

  set(text: string): void {
    this.counts.clear();
    this._open.clear();
    this._styles.clear();
    this._raw = [];
    this._owners = [];
    this._starts = [];
    this._current = this._before = null;
    this._isOpen = false;
    this.size = 0;
    this._all = new Choice();
    this._found = new Choice();
    this.append(text);
  }

  /** The numbers of the lines in a tab. */
  rows(tab: Tab): readonly number[] {
    if (tab !== this._tab) {
      this._tab = tab;
      this._all = new Choice();
    }
    return this._all.read(this._raw.length, line => this._isIn(tab, line));
  }

  /** The numbers of those that contain words, which are in lower case. */
  found(tab: Tab, words: string): readonly number[] {
    const rows = this.rows(tab);
    if (!words) {
      return rows;
    }
    if (tab !== this._foundIn || words !== this._words) {
      this._foundIn = tab;
      this._words = words;
      this._found = new Choice();
    }
    return this._found.read(this._raw.length, line => {
      if (!this._isIn(tab, line)) {
        return false;
      }
      const text = this._raw[line].slice(this._starts[line]);
      return text.replace(ESCAPE, '').toLowerCase().includes(words);
    });
  }

  owner(line: number): IOwner | null {
    return this._owners[line];
  }

  /** The printed text, in the color that an earlier line has switched on. */
  text(line: number): string {
    const text = this._raw[line].slice(this._starts[line]);
    return (this._styles.get(line) ?? '') + text;
  }

  /** The text to copy: with labels if it is merged. */
  copy(tab: Tab): string {
    const lines =
      tab === null ? this._raw : this.rows(tab).map(line => this.text(line));
    return lines.join('\n').replace(ESCAPE, '');
  }

  private _push(line: string): void {
    const reader = this._reader;
    reader.current = this._current;
    reader.read(line);
    const { owner, start } = reader;
    this._before = this._current;
    this._current = reader.current;
    if (owner && start >= 0) {
      this._count(owner, 1);
    }
    const style = owner && this._open.get(owner);
    if (style) {
      this._styles.set(this._raw.length, style);
    }
    if (owner && line.includes('\x1b')) {
      this._open.set(owner, openStyle((style ?? '') + line));
    }
    this._raw.push(line);
    this._owners.push(owner);
    this._starts.push(start);
    this.size += line.length;
  }

  private _pop(): string {
    const line = this._raw.pop() ?? '';
    const owner = this._owners.pop() ?? null;
    const start = this._starts.pop() ?? 0;
    if (owner && start >= 0) {
      this._count(owner, -1);
    }
    this._styles.delete(this._raw.length);
    // Only one line back is stored; before that, the line above says whose the next one is.
    const above = this._raw.length - 1;
    this._current = this._isOpen
      ? this._before
      : this._starts[above] === 0 || this._starts[above] === -1
        ? this._owners[above]
        : null;
    this.size -= line.length + (this._isOpen ? 0 : 1);
    this._isOpen = false;
    this._all.cut(this._raw.length);
    this._found.cut(this._raw.length);
    return line;
  }

  private _isIn(tab: Tab, line: number): boolean {
    const owner = this._owners[line];
    const isShown = tab === null || (owner !== null && owner.ranks.has(tab));
    return isShown && this._starts[line] >= 0;
  }

  private _count(owner: IOwner, change: number): void {
    this.counts.set(owner, (this.counts.get(owner) ?? 0) + change);
  }

  private _raw: string[] = [];
  private _owners: (IOwner | null)[] = [];
  private _starts: number[] = [];
  /** Whether the last line may go on. */
  private _isOpen = false;
  private _current: IOwner | null = null;
  private _before: IOwner | null = null;
  /** The styles that are on after the last line of each owner, and before some lines. */
  private readonly _open = new Map<IOwner, string>();
  private readonly _styles = new Map<number, string>();
  private _tab: Tab = null;
  private _all = new Choice();
  private _foundIn: Tab = null;
  private _words = '';
  private _found = new Choice();
}

/** The numbers of some of the lines; each line is checked only once. */
class Choice {
  read(count: number, isIn: (line: number) => boolean): readonly number[] {
    for (; this._seen < count; this._seen++) {
      if (isIn(this._seen)) {
        this._rows.push(this._seen);
      }
    }
    return this._rows;
  }

  cut(count: number): void {
    this._seen = Math.min(this._seen, count);
    while (this._rows[this._rows.length - 1] >= count) {
      this._rows.pop();
    }
  }

  private readonly _rows: number[] = [];
  private _seen = 0;
}

/** The styles that are still on at the end of a text. */
function openStyle(text: string): string {
  let open = '';
  for (const [code, numbers] of text.matchAll(STYLE)) {
    open = /^0*$/.test(numbers) ? '' : open + code;
  }
  return open;
}
