import { oddRanks } from '../outputs/outputView';
import { LabelReader, Owners, ranksOf } from '../outputs/labels';
import { Lines } from '../outputs/lines';

function make(text = '', worldSize = 4): Lines {
  const lines = new Lines(new LabelReader(new Owners(), worldSize), false);
  lines.append(text);
  return lines;
}

/** Every line in the merged tab, with its ranks. */
function merged(lines: Lines): string[] {
  return lines
    .rows(null)
    .map(row => `${lines.owner(row)?.label ?? ''}|${lines.text(row)}`);
}

function ofRank(lines: Lines, rank: number): string[] {
  return lines.rows(rank).map(row => lines.text(row));
}

describe('labelled text', () => {
  it('tells whose a line is, and where its own text begins', () => {
    const lines = make('[0-3] all\n[2]     two spaces\n[0,2-3] odd\n[1]   \n');
    expect(merged(lines)).toEqual([
      '0-3|all',
      '2|  two spaces',
      '0,2-3|odd',
      '1|'
    ]);
    expect(ofRank(lines, 2)).toEqual(['all', '  two spaces', 'odd']);
    expect(ofRank(lines, 1)).toEqual(['all', '']);
  });

  it('has a label above many lines of the same ranks', () => {
    const lines = make('[0]\na\n[not a label]\n\n[1-2] b\nwhose?\n[3]\nc');
    expect(merged(lines)).toEqual([
      '0|a',
      '0|[not a label]',
      '0|',
      '1-2|b',
      '|whose?',
      '3|c'
    ]);
    expect(ofRank(lines, 0)).toEqual(['a', '[not a label]', '']);
  });

  it('comes without padding from threads', () => {
    expect(merged(make('[1] late\n[12] later\n', 16))).toEqual([
      '1|late',
      '12|later'
    ]);
  });

  it.each([1, 2, 3, 5, 8])('can come in parts of %d characters', size => {
    const text = '[0-3] one\n[1]\ntwo\n[2] x\n\n[0-3] three\n[0]\nfour';
    const lines = make();
    for (let at = 0; at < text.length; at += size) {
      lines.append(text.slice(at, at + size));
      lines.rows(null);
      lines.rows(1);
    }
    expect(merged(lines)).toEqual(merged(make(text)));
    expect(ofRank(lines, 1)).toEqual(ofRank(make(text), 1));
    expect(lines.size).toBe(text.length);
    expect([...lines.counts].map(([{ label }, n]) => [label, n])).toEqual(
      [...make(text).counts].map(([{ label }, n]) => [label, n])
    );
  });

  it('can be taken back from its end, as by a carriage return', () => {
    const text = '[0]\nzero\n[1]   10%\n[2]   x\n[3]\nmany';
    for (let size = text.length; size >= 0; size--) {
      const lines = make(text);
      lines.rows(null);
      lines.cut(size);
      expect(lines.size).toBe(size);
      lines.append(text.slice(size));
      expect(merged(lines)).toEqual(merged(make(text)));
    }
  });

  it('keeps a colour that an earlier line has switched on', () => {
    const lines = make(
      '[0]   \x1b[1m\x1b[31mred\n[1]   plain\n[0]   still\x1b[0m\n[0]   no more\n'
    );
    expect(ofRank(lines, 0)).toEqual([
      '\x1b[1m\x1b[31mred',
      '\x1b[1m\x1b[31mstill\x1b[0m',
      'no more'
    ]);
    expect(ofRank(lines, 1)).toEqual(['plain']);
    expect(lines.copy(0)).toBe('red\nstill\nno more');
  });

  it('is copied with labels, or as a rank has printed it', () => {
    const lines = make('[0-1] all\n[2]\nmany\nlines');
    expect(lines.copy(null)).toBe('[0-1] all\n[2]\nmany\nlines');
    expect(lines.copy(2)).toBe('many\nlines');
  });

  it('takes time that grows with the text alone', () => {
    const lines = make();
    const line = '[0]   a line of some length, as programs print them\n';
    const begun = performance.now();
    for (let i = 0; i < 20_000; i++) {
      lines.append(line);
      lines.rows(0);
    }
    // Reading everything again each time would take minutes.
    expect(performance.now() - begun).toBeLessThan(30_000);
    expect(lines.rows(0)).toHaveLength(20_000);
  });
});

describe('ranks that differ', () => {
  const owners = new Owners();
  const odd = (count: number, ...labels: string[]) => [
    ...oddRanks(
      [...Array(count).keys()],
      labels.map(label => owners.of(label)!)
    )
  ];

  it('are those that most others do not agree with', () => {
    expect(ranksOf('0-2,5')).toEqual([0, 1, 2, 5]);
    expect(odd(4, '0-3', '3')).toEqual([3]);
    expect(odd(4, '0-3', '0-2')).toEqual([3]);
    expect(odd(3, '0', '1-2')).toEqual([0]);
  });

  it('are none if all agree, or nobody does', () => {
    expect(odd(4, '0-3')).toEqual([]);
    expect(odd(4, '0-3', '0', '1', '2', '3')).toEqual([]);
    expect(odd(2, '0', '0-1')).toEqual([]);
  });
});
