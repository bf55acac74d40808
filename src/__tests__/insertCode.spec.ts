import type { NotebookPanel } from '@jupyterlab/notebook';

import { insertCode } from '../ui/codeCells';
import { LOAD } from '../model/tokens';

/** Insert code below the second of these cells; answer what the new cell has. */
function insert(cells: string[], code: string, isToRun?: boolean): string {
  let inserted = '';
  const content = {
    widgets: cells.map(source => ({
      model: { sharedModel: { getSource: () => source } }
    })),
    activeCell: {},
    activeCellIndex: 1,
    deselectAll: jest.fn(),
    model: {
      sharedModel: {
        insertCell: (index: number, { source }: { source: string }) => {
          expect(index).toBe(2);
          inserted = source;
        }
      }
    }
  };
  insertCode({ content } as unknown as NotebookPanel, code, isToRun);
  expect(content.activeCellIndex).toBe(2);
  return inserted;
}

describe('insertCode', () => {
  const code = `${LOAD}\n%dist_init`;

  it('loads what a cell above loads only once', () => {
    expect(insert(['x = 1', 'y = 2'], code)).toBe(code);
    expect(insert([`import os\n${LOAD}`, ''], code)).toBe('%dist_init');
  });

  it('loads what only a comment, or a cell below, loads', () => {
    expect(insert([`# ${LOAD}`, ''], code)).toBe(code);
    expect(insert(['', '', LOAD], code)).toBe(code);
  });

  it('loads it for what runs at once, as the cell above may not have run', () => {
    expect(insert([LOAD, ''], code, true)).toBe(code);
  });
});
