import { CodeCellModel, type ICellModel } from '@jupyterlab/cells';

import type { KernelMessage } from '@jupyterlab/services';

import { CellWriters } from '../outputs/cellWriters';
import { find, restore as restoreCell } from '../outputs/restore';
import { RunningCell } from '../outputs/runningCell';
import type { IShown } from '../outputs/runningCell';
import { makeShown } from './samples';

function restore(cells: unknown[], shown: IShown): void {
  const cell = find(cells as ICellModel[], shown);
  if (cell) {
    restoreCell(cell, shown);
  }
}

function makeCell(id: string, source: string, type = 'code') {
  const outputs = { fromJSON: jest.fn(), toJSON: jest.fn(() => []) };
  const state = { executionCount: null, executionState: 'idle' };
  return { id, type, sharedModel: { source }, outputs, ...state };
}

describe('What a cell has shown', () => {
  const outputs = [{ output_type: 'stream', name: 'stdout', text: 'a' }];
  const shown = makeShown({
    cell_id: 'b',
    code: '1',
    execution_count: 7,
    outputs,
    running: false
  });

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

  it('keeps what is there if the rest was dropped, and says so once', () => {
    const cell = new CodeCellModel();
    const there = { output_type: 'stream', name: 'stdout', text: 'a\n' };
    const said = { output_type: 'stream', name: 'stderr', text: 'dropped\n' };
    cell.outputs.fromJSON([there] as never);
    for (let time = 0; time < 2; time++) {
      restore([cell], {
        ...shown,
        cell_id: cell.id,
        outputs: [said] as never,
        dropped: true
      });
    }
    expect(cell.outputs.toJSON()).toEqual([there, said]);
  });

  it('is dropped if the cell is gone', () => {
    expect(
      find([makeCell('a', '2')] as unknown as ICellModel[], shown)
    ).toBeUndefined();
  });

  it('goes on while the cell runs', () => {
    const cell = new CodeCellModel();
    const display = { output_type: 'display_data', data: {}, metadata: {} };
    const before = [...outputs, display];
    cell.outputs.fromJSON(before as never);
    const running = new RunningCell(cell, {
      ...{ ...shown, outputs: before, displays: { d: [1] }, last: ['m'] }
    });
    expect(cell.executionState).toBe('running');
    const take = (msg_type: string, content: object, msg_id = '') =>
      running.take({
        header: { msg_type, msg_id },
        content
      } as KernelMessage.IIOPubMessage);
    const transient = { display_id: 'd' };
    const data = { 'text/plain': 'x' };
    take('display_data', { data, metadata: {}, transient });
    take('stream', { name: 'stdout', text: 'b' });
    take('stream', { name: 'stdout', text: 'c' });
    const news = { 'text/plain': 'y' };
    take('update_display_data', { data: news, metadata: {}, transient });
    const shownNow = () =>
      cell.outputs.toJSON().map(({ data, text }) => data ?? text);
    expect(shownNow()).toEqual(['a', news, news, 'bc']);
    take('stream', { name: 'stdout', text: 'b' }, 'm');
    expect(shownNow()).toEqual(['a', news, news, 'bc']);
    running.answered('name? Ada\n');
    expect(shownNow().at(-1)).toBe('name? Ada\n');
    take('clear_output', { wait: true });
    expect(shownNow()).toHaveLength(5);
    take('stream', { name: 'stdout', text: 'd' });
    expect(shownNow()).toEqual(['d']);
    expect(take('status', { execution_state: 'busy' })).toBe(false);
    expect(take('status', { execution_state: 'idle' })).toBe(true);
    running.end();
    expect(cell.executionState).toBe('idle');
  });
});

describe('A cell that several pages show', () => {
  /** What pages tell each other. */
  const states = new Map<number, Record<string, unknown>>();
  const open = (clientID: number) => {
    states.set(clientID, {});
    return new CellWriters({
      clientID,
      getStates: () => states,
      getLocalState: () => states.get(clientID) ?? null,
      setLocalState: jest.fn(),
      on: jest.fn(),
      setLocalStateField: (field, value) =>
        states.set(clientID, { ...states.get(clientID), [field]: value })
    });
  };
  const mayWrite = (...pages: CellWriters[]) =>
    pages.map(page => page.mayWrite('a'));

  afterEach(() => states.clear());

  it('is written by the page that runs it', () => {
    const [first, second] = [1, 2].map(open);
    second.take('a');
    expect(mayWrite(first, second)).toEqual([false, false]);
    expect(first.mayWrite('b')).toBe(true);
    second.leave('a');
    expect(mayWrite(first, second)).toEqual([true, false]);
  });

  it('is written by one of the others if that page is gone', () => {
    const [first, second, third] = [3, 1, 2].map(open);
    second.take('a');
    states.delete(1);
    expect(mayWrite(first, third)).toEqual([false, true]);
  });

  it('is left as often as it was taken', () => {
    const page = open(1);
    page.take('a');
    page.take('a');
    page.leave('a');
    expect(page.mayWrite('a')).toBe(false);
    page.leave('a');
    page.leave('a');
    expect(page.mayWrite('a')).toBe(true);
  });
});
