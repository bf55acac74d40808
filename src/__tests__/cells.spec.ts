import { createStandaloneCell } from '@jupyter/ydoc';
import type { YCodeCell } from '@jupyter/ydoc';
import type { Cell } from '@jupyterlab/cells';
import { Widget } from '@lumino/widgets';

import { CellEdge } from '../notebook/cells/cellEdges';
import {
  listedRanks,
  sayWhere,
  toggled,
  whereRuns
} from '../notebook/cells/magic';

describe('whereRuns', () => {
  it.each([
    ['%%distributed\nx', 'all', 'Runs on all ranks'],
    ['\n\n  %%distributed -q', 'all', 'Runs on all ranks'],
    ['%%distributed --ranks 0,2 -q', '0,2', 'Runs on ranks 0, 2'],
    ['%%distributed -r=1', '1', 'Runs on rank 1'],
    ['%%rank 0', '0', 'Runs on rank 0'],
    ['%%rank [0, 2]\nx', '0, 2', 'Runs on ranks 0, 2'],
    ['%%rank[0,2]', '0,2', 'Runs on ranks 0, 2'],
    ['%%rank ::2', '::2', 'Runs on ranks ::2']
  ])('%j is on %s', (source, where, words) => {
    expect(whereRuns(source)).toBe(where);
    expect(sayWhere(where)).toBe(words);
  });

  it.each([
    '',
    'x\n%%distributed',
    '%%rank',
    '%%ranks 0',
    '%distributed',
    '%%time'
  ])('%j is in the notebook', source => expect(whereRuns(source)).toBeNull());
});

describe('whereRuns under the mode', () => {
  it.each([
    ['x', 'all'],
    ['# why\n\n  x', 'all'],
    ['!ls', 'all'],
    ['%%time\nx', 'all'],
    ['%%rank 1\nx', '1'],
    ['%dist_status', null],
    ['# look\n%dist_status', null],
    ['%reload_ext jupyter_dist_server', null],
    ['# only words', null],
    ['', null]
  ])('%j is on %s', (source, where) => {
    expect(whereRuns(source, true)).toBe(where);
  });
});

describe('listedRanks', () => {
  it('knows those that are written', () => {
    expect(listedRanks('0-2, 5,1')).toEqual([0, 1, 2, 5]);
    expect(listedRanks('0-127')).toHaveLength(8);
    expect(listedRanks('all')).toBeNull();
    expect(listedRanks('::2')).toBeNull();
  });
});

describe('toggled', () => {
  const toggle = (source: string) => {
    const { end, start } = toggled(source);
    return start + source.slice(end);
  };

  it('puts the magic before, or takes it away', () => {
    expect(toggle('x')).toBe('%%distributed\nx');
    expect(toggle('')).toBe('%%distributed\n');
    expect(toggle('%%distributed\nx')).toBe('x');
    expect(toggle('\n%%rank 0\nx\ny')).toBe('x\ny');
    expect(toggle('%%distributed')).toBe('');
  });
});

describe('CellEdge', () => {
  let cell: Widget;
  let source: YCodeCell;
  const moved = jest.fn();

  let isMode = false;

  function makeCell(text: string): CellEdge {
    source = createStandaloneCell({
      cell_type: 'code',
      source: text
    }) as YCodeCell;
    cell = new Widget();
    Object.assign(cell, { model: { sharedModel: source } });
    return new CellEdge(cell as Cell, () => isMode, moved);
  }

  const label = () =>
    cell.node.querySelector('[role=img]')?.getAttribute('aria-label') ?? null;

  it('names the ranks, and follows what is typed', () => {
    makeCell('print(1)');
    expect(label()).toBeNull();
    expect(cell.hasClass('jp-dist-CellOnRanks')).toBe(false);
    source.updateSource(0, 0, '%%distributed\n');
    expect(label()).toBe('Runs on all ranks');
    expect(cell.hasClass('jp-dist-CellOnRanks')).toBe(true);
    source.updateSource(0, 13, '%%rank 0,2');
    expect(label()).toBe('Runs on ranks 0, 2');
    source.updateSource(10, 10, ',3');
    expect(label()).toBe('Runs on ranks 0, 2, 3');
    source.setSource('print(1)');
    expect(label()).toBeNull();
    expect(cell.hasClass('jp-dist-CellOnRanks')).toBe(false);
  });

  it('does not look at what comes after the first line', () => {
    makeCell('%%distributed\nx');
    const read = jest.spyOn(source, 'getSource');
    source.updateSource(14, 15, 'y');
    source.updateSource(15, 15, '\nz');
    expect(read).not.toHaveBeenCalled();
    source.updateSource(13, 14, '');
    expect(read).toHaveBeenCalled();
    expect(label()).toBeNull();
  });

  it('follows the mode', () => {
    const mark = makeCell('# first\nx');
    isMode = true;
    mark.look();
    expect(label()).toBe('Runs on all ranks');
    source.updateSource(8, 8, '%dist_status #');
    expect(label()).toBeNull();
    isMode = false;
  });

  it('tells when it moves, and lets go of a cell that is gone', () => {
    makeCell('x');
    moved.mockClear();
    source.updateSource(0, 0, '%%distributed\n');
    expect(moved).toHaveBeenCalledTimes(1);
    cell.dispose();
    source.setSource('x');
    expect(moved).toHaveBeenCalledTimes(1);
  });
});
