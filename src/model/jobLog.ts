import { Signal } from '@lumino/signaling';

import { asApiError } from './restClient';
import type { IApiError } from './contract';
import type { IJobLines, ILinesQuery } from './detailsContract';
import { ENDED } from './queueContract';

/** The most blocks (of at most 64 KiB) that are kept; others are read again when needed. */
const MOST_BLOCKS = 16;
/** How many blocks are read at first. */
const AT_FIRST = 4;

interface IBlock {
  start: number;
  end: number;
  lines: string[];
  /** Whether its first line was written over, with what precedes it in the same line. */
  isOver: boolean;
  /** Whether its last line goes on in the next block, at its end or, after `\r`, at its start. */
  tail: 'ends' | 'goes on' | 'starts over';
}

/** A part of what a job has printed: lines are read by their place in the file. */
export class JobLog {
  constructor(
    private readonly _read: (query: ILinesQuery) => Promise<IJobLines>
  ) {}

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);
  /** Without what progress bars wrote over. */
  lines: readonly string[] = [];
  /** Of the file, in bytes. */
  size = 0;
  /** How many lines the last change has put before the others; negative if it took some away. */
  shift = 0;
  /** The line, from 0, that was found last. */
  found: number | null = null;
  error: IApiError | null = null;

  /** Where the lines begin and end in the file, in bytes. */
  get start(): number {
    return this._blocks[0]?.start ?? 0;
  }

  get end(): number {
    return this._blocks.at(-1)?.end ?? 0;
  }

  /** Whether all has been read, and no more will come. */
  get isComplete(): boolean {
    return this._hasEnded && this.end >= this.size;
  }

  /** Whether reading at one end drops lines at the other. */
  get isFull(): boolean {
    return this._blocks.length >= MOST_BLOCKS;
  }

  get isBusy(): boolean {
    return this._waiting > 0;
  }

  toEnd(): Promise<void> {
    return this._do(() => this._readEnd());
  }

  toStart(): Promise<void> {
    return this._do(async () => {
      const block = await this._ask({ offset: 0 });
      this.found = null;
      this._set([block]);
    });
  }

  /** Read what is before the first line. */
  earlier(): Promise<void> {
    return this._do(async () => {
      if (this.start > 0) {
        const block = await this._ask({ before: this.start });
        const kept = this._blocks.slice(0, MOST_BLOCKS - 1);
        const blocks = [block, ...kept];
        this._set(blocks, join(blocks).length - join(kept).length);
      }
    });
  }

  /** Read what is behind the last line, which may have been half of one. */
  later(): Promise<void> {
    return this._do(async () => {
      const last = this._blocks.at(-1);
      if (!last) {
        // The first read has failed.
        return this._readEnd();
      }
      const known = this._blocks.slice(0, -1);
      const again = await this._ask({ offset: last.start });
      if (this.size < last.end) {
        // Another file, or it was emptied.
        return this._readEnd();
      }
      const blocks = [...known, again];
      // What was written in the meantime may fill several.
      while (
        blocks.length < known.length + AT_FIRST &&
        blocks.at(-1)!.end < this.size
      ) {
        const next = await this._ask({ offset: blocks.at(-1)!.end });
        if (next.end <= blocks.at(-1)!.end) {
          break;
        }
        blocks.push(next);
      }
      const kept = blocks.slice(-MOST_BLOCKS);
      this._set(kept, join(kept).length - join(blocks).length);
    });
  }

  /** Go to the next line with a text; after the last one, to the first. */
  find(text: string): Promise<void> {
    return this._do(async () => {
      const wanted = text.toLowerCase();
      const has = (line: string) => line.toLowerCase().includes(wanted);
      if (text !== this._sought) {
        this._sought = text;
        this.found = null;
      }
      const from = (this.found ?? -1) + 1;
      const near = this.lines.findIndex(
        (line, index) => index >= from && has(line)
      );
      if (near >= 0) {
        this.found = near;
        return;
      }
      let lines = await this._read({ find: text, offset: this.end });
      if (!lines.found) {
        lines = await this._read({ find: text, offset: 0 });
      }
      if (lines.found) {
        this._set([this._take(lines)]);
        this.found = Math.max(0, this.lines.findIndex(has));
      } else {
        this.found = null;
      }
    });
  }

  private async _readEnd(): Promise<void> {
    let block = await this._ask({ before: -1 });
    const blocks = [block];
    while (blocks.length < AT_FIRST && block.start > 0) {
      block = await this._ask({ before: block.start });
      blocks.unshift(block);
    }
    this.found = null;
    this._set(blocks);
  }

  /** One after the other. */
  private _do(work: () => Promise<void>): Promise<void> {
    this._waiting += 1;
    const done = this._last.then(async () => {
      this.shift = 0;
      try {
        await work();
        this.error = null;
      } catch (error) {
        this.error = asApiError(error);
      } finally {
        this._waiting -= 1;
      }
      this.changed.emit();
    });
    this._last = done.catch(() => undefined);
    return done;
  }

  private async _ask(query: ILinesQuery): Promise<IBlock> {
    return this._take(await this._read(query));
  }

  private _take({ offset, next, size, text, state }: IJobLines): IBlock {
    this.size = size;
    this._hasEnded = ENDED.includes(state);
    const raw = text.split('\n');
    // Behind the last end of a line there is none yet.
    if (raw.at(-1) === '') {
      raw.pop();
    }
    return {
      start: offset,
      end: next,
      lines: raw.map(fold),
      isOver: /\r+[^\r]/.test(raw[0] ?? ''),
      tail: text.endsWith('\r')
        ? 'starts over'
        : text === '' || text.endsWith('\n')
          ? 'ends'
          : 'goes on'
    };
  }

  private _set(blocks: IBlock[], shift = 0): void {
    if (this.found !== null) {
      this.found += shift;
    }
    this._blocks = blocks;
    this.lines = join(blocks);
    this.shift = shift;
  }

  private _blocks: IBlock[] = [];
  private _sought = '';
  private _hasEnded = false;
  private _waiting = 0;
  private _last = Promise.resolve();
}

/** What a terminal shows of a line: without what was written over. */
function fold(line: string): string {
  const end = line.endsWith('\r') ? line.replace(/\r+$/, '') : line;
  return end.slice(end.lastIndexOf('\r') + 1);
}

/** The lines of blocks; a line that was cut in two, such as a long progress bar, is joined. */
function join(blocks: readonly IBlock[]): string[] {
  const all: string[] = [];
  blocks.forEach(({ lines, isOver }, index) => {
    const before = blocks[index - 1];
    if (before && before.tail !== 'ends' && lines.length) {
      const last = all.pop() ?? '';
      const first = lines[0];
      // Of `\r\n` the second half may come later.
      const isNew = first !== '' && (isOver || before.tail === 'starts over');
      all.push(isNew ? first : last + first);
      lines = lines.slice(1);
    }
    lines.forEach(line => all.push(line));
  });
  return all;
}
