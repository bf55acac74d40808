import type { JupyterFrontEnd } from '@jupyterlab/application';
import { NotebookModel } from '@jupyterlab/notebook';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';

import { replayPlugin } from '../outputs/replay';
import { makeModel, makePool, until } from './samples';

type OnMessage = (message: object) => Promise<void>;

/** A notebook whose page was loaded again while its cell ran. */
function setUp() {
  const model = new NotebookModel();
  model.sharedModel.insertCell(0, { cell_type: 'code', source: 'train()' });
  const cell = model.cells.get(0) as ICodeCellModel;
  const comm: { commId: string; onMsg?: OnMessage } = { commId: 'c' };
  const kernel = {
    id: 'k1',
    clientId: 's',
    username: '',
    isDisposed: false,
    createComm: () => comm,
    sendControlMessage: jest.fn()
  };
  const signals = {
    iopubMessage: new Signal<object, unknown>(kernel),
    statusChanged: new Signal<object, string>(kernel),
    disposed: new Signal<object, void>(kernel)
  };
  Object.assign(kernel, signals);
  const panel = {
    isDisposed: false,
    disposed: new Signal<object, void>({}),
    context: { model, ready: Promise.resolve() },
    content: { model },
    sessionContext: { session: { kernel } }
  };
  const tracker = {
    forEach: (visit: (one: object) => void) => visit(panel),
    widgetAdded: new Signal<object, object>({})
  };
  void replayPlugin.activate(
    {} as JupyterFrontEnd,
    tracker,
    makeModel({ pools: new Map([['p1', makePool()]]) })
  );
  const shown = {
    request: 'r',
    cell_id: cell.id,
    code: 'train()',
    execution_count: 7,
    outputs: [],
    displays: {},
    cleared: false,
    age: null
  };
  const answer = () => comm.onMsg?.({ content: { data: { cells: [shown] } } });
  return { ...signals, cell, answer };
}

describe('A cell that ran when the page was loaded', () => {
  it.each(['restarting', 'autorestarting', 'dead'])(
    'runs no more when its kernel is %s',
    async status => {
      const { cell, answer, statusChanged } = setUp();
      await answer();
      await until(() => cell.executionState === 'running');
      statusChanged.emit('busy');
      expect(cell.executionState).toBe('running');
      statusChanged.emit(status);
      expect(cell.executionState).toBe('idle');
    }
  );

  it('runs no more when its notebook has another kernel', async () => {
    const { cell, answer, disposed } = setUp();
    await answer();
    disposed.emit();
    expect(cell.executionState).toBe('idle');
  });
});
