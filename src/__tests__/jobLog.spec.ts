import { ApiError } from '../model/restClient';
import type { IJobLines, ILinesQuery } from '../model/detailsContract';
import { JobLog } from '../model/jobLog';
import { makeLines } from './queueSamples';

/** Bytes in one answer. */
const PIECE = 100;

/** What a server answers that has this text. */
class Output {
  text = '';
  readonly read = jest.fn((query: ILinesQuery): Promise<IJobLines> => {
    const { offset = 0, before, find } = query;
    const size = this.text.length;
    const answer = (start: number, end: number, found = true) =>
      Promise.resolve(
        makeLines({
          ...{ offset: start, next: end, size, found, state: 'RUNNING' },
          text: this.text.slice(start, end)
        })
      );
    if (find !== undefined) {
      const place = this.text.indexOf(find, offset);
      const start = this.text.lastIndexOf('\n', place) + 1;
      return place < 0 ? answer(0, 0, false) : this._from(start, answer);
    }
    if (before !== undefined) {
      const end = before < 0 ? size : before;
      const first = Math.max(0, end - PIECE);
      // A line that is longer than an answer is cut anywhere.
      const cut = first ? this.text.slice(first, end - 1).indexOf('\n') : -1;
      return answer(first + cut + 1, end);
    }
    return this._from(offset, answer);
  });

  private _from(
    start: number,
    answer: (start: number, end: number) => Promise<IJobLines>
  ) {
    const most = start + PIECE;
    const last = this.text.lastIndexOf('\n', most - 1);
    const isWhole = most >= this.text.length || last < start;
    return answer(start, isWhole ? Math.min(most, this.text.length) : last + 1);
  }
}

describe('JobLog', () => {
  let output: Output;
  let log: JobLog;
  const lines = (count: number) =>
    Array.from({ length: count }, (_, line) => `line ${line}`);

  beforeEach(() => {
    output = new Output();
    output.text = lines(1000).join('\n') + '\n';
    log = new JobLog(output.read);
  });

  it('reads the end, and what is before it when it is wanted', async () => {
    await log.toEnd();
    expect(log.lines.at(-1)).toBe('line 999');
    const first = log.lines.length;
    expect(first).toBeLessThan(60);
    await log.earlier();
    expect(log.shift).toBe(log.lines.length - first);
    expect(log.shift).toBeGreaterThan(0);
    expect(log.lines).toEqual(lines(1000).slice(-log.lines.length));
  });

  it('keeps little of it, wherever one reads', async () => {
    await log.toStart();
    for (let i = 0; i < 40; i++) {
      await log.later();
      const last = Number(log.lines.at(-1)?.slice(5));
      expect(log.lines).toEqual(
        lines(last + 1).slice(last + 1 - log.lines.length)
      );
    }
    expect(log.lines.at(-1)).toBe('line 999');
    expect(log.lines.length).toBeLessThan(450);
    for (let i = 0; i < 110; i++) {
      await log.earlier();
    }
    expect(log.lines[0]).toBe('line 0');
    expect(log.lines.length).toBeLessThan(450);
  });

  it('reads on in a line that was half there', async () => {
    output.text = 'one\ntw';
    await log.toEnd();
    expect(log.lines).toEqual(['one', 'tw']);
    output.text += 'o\nthree';
    await log.later();
    expect(log.lines).toEqual(['one', 'two', 'three']);
  });

  it('leaves out what a progress bar wrote over', async () => {
    output.text = '  0 %\r 50 %\r100 %\ndone\r\n';
    await log.toEnd();
    expect(log.lines).toEqual(['100 %', 'done']);
  });

  it('makes one line of a progress bar that is longer than an answer', async () => {
    const states = Array.from({ length: 40 }, (_, step) => `step ${step}`);
    output.text = `begin\r\n${states.join('\r')}`;
    await log.toEnd();
    expect(log.lines).toEqual(['begin', 'step 39']);
    output.text += '\rstep 40\r';
    await log.later();
    expect(log.lines.at(-1)).toBe('step 40');
    output.text += '\nend\n';
    await log.later();
    expect(log.lines).toEqual(['begin', 'step 40', 'end']);
    await log.toStart();
    expect(log.lines[0]).toBe('begin');
  });

  it('begins again in another file', async () => {
    await log.toEnd();
    output.text = 'new\n';
    await log.later();
    expect(log.lines).toEqual(['new']);
  });

  it('finds the next line with a text, in all of it', async () => {
    await log.toEnd();
    await log.find('line 5');
    expect(log.lines[log.found ?? -1]).toBe('line 5');
    await log.find('line 5');
    // Those in sight first, then the next in the file.
    expect(log.lines[log.found ?? -1]).toMatch(/^line 5\d/);
    await log.find('nothing of the kind');
    expect(log.found).toBeNull();
  });

  it.each(['toStart', 'toEnd'] as const)(
    '%s shows nothing as found',
    async go => {
      await log.toEnd();
      await log.find('line 5');
      await log[go]();
      expect(log.found).toBeNull();
    }
  );

  it('does not take one text for another when a search fails', async () => {
    await log.toEnd();
    await log.find('line 5');
    const error = { code: 'x', message: 'No.', hint: '' };
    output.read.mockRejectedValueOnce(new ApiError(error, 500));
    await log.find('nothing of the kind');
    expect(log.error?.message).toBe('No.');
    expect(log.found).toBeNull();
  });

  it('reads its end, and not all of it, after the first read has failed', async () => {
    const error = { code: 'x', message: 'No.', hint: '' };
    output.read.mockRejectedValueOnce(new ApiError(error, 500));
    await log.toEnd();
    expect(log.lines).toEqual([]);
    await log.later();
    expect(log.lines.at(-1)).toBe('line 999');
    expect(log.start).toBeGreaterThan(0);
  });

  it('begins before anything was printed', async () => {
    output.text = '';
    await log.toEnd();
    expect(log.lines).toEqual([]);
    output.text = 'hello\n';
    await log.later();
    expect(log.lines).toEqual(['hello']);
  });
});
