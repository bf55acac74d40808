import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './client';
import type { IApiError } from './contract';
import type { IJobLines, ILinesQuery } from './detailsContract';
import { ENDED } from './queueContract';

/** Blocks of at most 64 KiB that are kept: what is further away is read again when it is wanted. */
const MOST_BLOCKS = 32;
/** Blocks that are read at first. */
const AT_FIRST = 4;

interface IBlock {
  start: number;
  end: number;
  lines: string[];
}

/**
 * A part of what a job has printed, however long it is: lines are read by their place in the file.
 */
export class JobLog {
  constructor(
    private readonly _read: (query: ILinesQuery) => Promise<IJobLines>
  ) {}

  /** Emitted after any change below. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Those that are there, without what progress bars wrote over. */
  get lines(): readonly string[] {
    return this._lines;
  }

  /** Where they begin and end in the file, and its size, in bytes. */
  get start(): number {
    return this._blocks[0]?.start ?? 0;
  }

  get end(): number {
    return this._blocks.at(-1)?.end ?? 0;
  }

  get size(): number {
    return this._size;
  }

  /** How many lines the last change has put before the others; negative if it took some away. */
  get shift(): number {
    return this._shift;
  }

  /** The line, from 0, that was found last. */
  get found(): number | null {
    return this._found;
  }

  get hasEnded(): boolean {
    return this._hasEnded;
  }

  get error(): IApiError | null {
    return this._error;
  }

  /** Read the end of it. */
  toEnd(): Promise<void> {
    return this._do(async () => {
      let block = await this._ask({ before: -1 });
      const blocks = [block];
      while (blocks.length < AT_FIRST && block.start > 0) {
        block = await this._ask({ before: block.start });
        blocks.unshift(block);
      }
      this._set(blocks);
    });
  }

  toStart(): Promise<void> {
    return this._do(async () => {
      this._set([await this._ask({ offset: 0 })]);
    });
  }

  /** Read what is before the first line. */
  earlier(): Promise<void> {
    return this._do(async () => {
      if (this.start > 0) {
        const block = await this._ask({ before: this.start });
        const kept = this._blocks.slice(0, MOST_BLOCKS - 1);
        this._set([block, ...kept], block.lines.length);
      }
    });
  }

  /** Read what is behind the last line, which may have been half of one. */
  later(): Promise<void> {
    return this._do(async () => {
      const last = this._blocks.at(-1);
      if (!last) {
        this._set([await this._ask({ offset: 0 })]);
        return;
      }
      const known = this._blocks.slice(0, -1);
      const again = await this._ask({ offset: last.start });
      const blocks = [...known, again];
      // What was written in the meantime may fill several.
      while (
        blocks.length < known.length + AT_FIRST &&
        blocks.at(-1)!.end < this._size
      ) {
        const next = await this._ask({ offset: blocks.at(-1)!.end });
        if (next.end <= blocks.at(-1)!.end) {
          break;
        }
        blocks.push(next);
      }
      const gone = blocks.splice(0, Math.max(0, blocks.length - MOST_BLOCKS));
      this._set(
        blocks,
        -gone.reduce((sum, { lines }) => sum + lines.length, 0)
      );
    });
  }

  /** Go to the next line with a text, from the one that was found last on; then from the start. */
  find(text: string): Promise<void> {
    return this._do(async () => {
      const wanted = text.toLowerCase();
      const has = (line: string) => line.toLowerCase().includes(wanted);
      const from = text === this._sought ? (this._found ?? -1) + 1 : 0;
      this._sought = text;
      const near = this._lines.findIndex(
        (line, index) => index >= from && has(line)
      );
      if (near >= 0) {
        this._found = near;
        return;
      }
      let lines = await this._read({ find: text, offset: this.end });
      if (!lines.found) {
        lines = await this._read({ find: text, offset: 0 });
      }
      if (lines.found) {
        this._set([this._take(lines)]);
        this._found = Math.max(0, this._lines.findIndex(has));
      } else {
        this._found = null;
      }
    });
  }

  /** One at a time; the others are dropped, as they are asked for again by who still wants them. */
  private async _do(work: () => Promise<void>): Promise<void> {
    if (this._isBusy) {
      return;
    }
    this._isBusy = true;
    this._shift = 0;
    try {
      await work();
      this._error = null;
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      this._error = error;
    } finally {
      this._isBusy = false;
    }
    this._changed.emit();
  }

  private async _ask(query: ILinesQuery): Promise<IBlock> {
    return this._take(await this._read(query));
  }

  private _take({ offset, next, size, text, state }: IJobLines): IBlock {
    this._size = size;
    this._hasEnded = ENDED.includes(state);
    const lines = text.split('\n').map(fold);
    // Behind the last end of a line there is none yet.
    if (lines.at(-1) === '') {
      lines.pop();
    }
    return { start: offset, end: next, lines };
  }

  private _set(blocks: IBlock[], shift = 0): void {
    if (this._found !== null) {
      this._found += shift;
    }
    this._blocks = blocks;
    this._lines = blocks.flatMap(({ lines }) => lines);
    this._shift = shift;
  }

  private readonly _changed = new Signal<this, void>(this);
  private _blocks: IBlock[] = [];
  private _lines: readonly string[] = [];
  private _size = 0;
  private _shift = 0;
  private _found: number | null = null;
  private _sought = '';
  private _hasEnded = false;
  private _error: IApiError | null = null;
  private _isBusy = false;
}

/** What a terminal would show of a line: what was written over is left out. */
function fold(line: string): string {
  const end = line.endsWith('\r') ? line.replace(/\r+$/, '') : line;
  return end.slice(end.lastIndexOf('\r') + 1);
}
