import { restore } from '../replay';
import type { IShown } from '../replay';

function makeCell(id: string, source: string, type = 'code') {
  const outputs = { fromJSON: jest.fn() };
  return { id, type, sharedModel: { source }, outputs, executionCount: null };
}

describe('What a cell has shown', () => {
  const outputs = [{ output_type: 'stream', name: 'stdout', text: 'a' }];
  const shown: IShown = {
    cell_id: 'b',
    code: '1',
    execution_count: 7,
    outputs,
    age: 0
  };

  it('is put into the cell of the same id', () => {
    const cells = [makeCell('a', '1'), makeCell('b', '2')];
    restore(cells, shown);
    expect(cells[1].outputs.fromJSON).toHaveBeenCalledWith(outputs);
    expect(cells[1].executionCount).toBe(7);
    expect(cells[0].outputs.fromJSON).not.toHaveBeenCalled();
  });

  it('is put into the cell of the same source if there are no ids', () => {
    const cells = [
      makeCell('x', '1', 'markdown'),
      makeCell('y', '2'),
      makeCell('z', '1')
    ];
    restore(cells, shown);
    expect(cells.map(({ executionCount }) => executionCount)).toEqual([
      null,
      null,
      7
    ]);
  });

  it('is dropped if the cell is gone', () => {
    expect(() => restore([makeCell('a', '2')], shown)).not.toThrow();
  });
});
