import { CodeCellModel } from '@jupyterlab/cells';

import { restore } from '../outputs/replay';
import type { IShown } from '../outputs/replay';

function makeCell(id: string, source: string, type = 'code') {
  const outputs = { fromJSON: jest.fn(), toJSON: jest.fn(() => []) };
  const state = { executionCount: null, executionState: 'idle' };
  return { id, type, sharedModel: { source }, outputs, ...state };
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

  it('stays out of a cell that runs again', () => {
    const cell = { ...makeCell('b', '1'), executionState: 'running' };
    restore([cell], shown);
    expect(cell.outputs.fromJSON).not.toHaveBeenCalled();
    expect(cell.executionCount).toBeNull();
  });

  it('does not make a notebook dirty that shows it already', () => {
    const cell = new CodeCellModel();
    cell.sharedModel.setSource('1');
    cell.outputs.fromJSON(shown.outputs as never);
    cell.executionCount = 7;
    const changed = jest.fn();
    cell.contentChanged.connect(changed);
    restore([cell], { ...shown, cell_id: cell.id });
    expect(changed).not.toHaveBeenCalled();
    const news = [{ output_type: 'stream', name: 'stdout', text: 'b' }];
    restore([cell], { ...shown, cell_id: cell.id, outputs: news });
    expect(changed).toHaveBeenCalled();
    expect(cell.outputs.toJSON()).toEqual(news);
  });

  it('is dropped if the cell is gone', () => {
    expect(() => restore([makeCell('a', '2')], shown)).not.toThrow();
  });
});
