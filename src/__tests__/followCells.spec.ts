import type { JupyterFrontEnd } from '@jupyterlab/application';
import { NotebookModel } from '@jupyterlab/notebook';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';

import { replayPlugin } from '../outputs/replay';
import type { IShown } from '../outputs/runningCell';
import { makeModel, makePool, makeShown, until } from './samples';

const KIND = 'jupyter_dist_replay';

interface IQuestion {
  content: { known?: string[]; saved?: string[]; session?: string };
  header: { msg_id: string };
}

function makeConnection(clientId: string) {
  const kernel = {
    id: 'k1',
    clientId,
    username: '',
    isDisposed: false,
    connectionStatus: 'connected',
    dispose: jest.fn(),
    clone: jest.fn(),
    sendInputReply: jest.fn(),
    sendControlMessage: jest.fn()
  };
  const signals = {
    iopubMessage: new Signal<object, object>(kernel),
    statusChanged: new Signal<object, string>(kernel),
    connectionStatusChanged: new Signal<object, string>(kernel),
    disposed: new Signal<object, void>(kernel)
  };
  const sent = (): IQuestion[] =>
    kernel.sendControlMessage.mock.calls.map(([message]) => message);
  return { ...Object.assign(kernel, signals), sent };
}

/** A notebook whose page was just loaded. */
async function setUp() {
  const model = new NotebookModel();
  model.sharedModel.insertCell(0, { cell_type: 'code', source: 'train()' });
  model.dirty = false;
  const cell = model.cells.get(0) as ICodeCellModel;
  const kernel = makeConnection('s');
  const line = makeConnection('line');
  kernel.clone.mockReturnValue(line);
  const saveState = new Signal<object, string>({});
  const setPrompt = jest.fn();
  const panel = {
    isDisposed: false,
    disposed: new Signal<object, void>({}),
    context: { model, ready: Promise.resolve(), saveState },
    content: { model, widgets: [{ model: cell, setPrompt }] },
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
  await until(() => line.sent().length > 0);
  const answer = (changes: Partial<IShown> = {}, place = -1) =>
    line.iopubMessage.emit({
      header: { msg_type: 'comm_msg' },
      parent_header: line.sent().at(place)!.header,
      content: {
        comm_id: KIND,
        data: { cells: [makeShown({ cell_id: cell.id, ...changes })] }
      }
    });
  const publish = (
    connection: typeof line,
    msg_type: string,
    content: object = {},
    parent: object = { msg_id: 'r', session: 'gone' }
  ) =>
    connection.iopubMessage.emit({
      header: { msg_type, msg_id: '' },
      parent_header: { msg_type: 'execute_request', ...parent },
      content
    });
  const say = (text: string) =>
    publish(line, 'stream', { name: 'stdout', text });
  const idle = { execution_state: 'idle' };
  const texts = () => cell.outputs.toJSON().map(({ text }) => text);
  return {
    ...{ model, cell, kernel, line, saveState, idle, setPrompt },
    ...{ answer, publish, say, texts }
  };
}

describe('A cell that ran when the page was loaded', () => {
  it.each(['restarting', 'autorestarting', 'dead'])(
    'runs no more when its kernel is %s',
    async status => {
      const { cell, answer, kernel } = await setUp();
      answer();
      expect(cell.executionState).toBe('running');
      kernel.statusChanged.emit('busy');
      expect(cell.executionState).toBe('running');
      kernel.statusChanged.emit(status);
      expect(cell.executionState).toBe('idle');
    }
  );

  it('runs no more when its notebook has another kernel', async () => {
    const { cell, answer, kernel, line } = await setUp();
    answer();
    kernel.disposed.emit();
    expect(cell.executionState).toBe('idle');
    expect(line.dispose).toHaveBeenCalled();
  });

  it('is asked for by a connection that need not wait, and followed there', async () => {
    const { cell, answer, kernel, line, say, texts } = await setUp();
    expect(kernel.sendControlMessage).not.toHaveBeenCalled();
    expect(line.sent()[0].content).toEqual({ session: 's', known: [] });
    const outputs = [{ output_type: 'stream', name: 'stdout', text: 'a' }];
    answer({ outputs: outputs as never });
    say('b');
    expect(texts()).toEqual(['ab']);
    expect(cell.executionState).toBe('running');
  });

  it('is asked for again when the connection was lost, or its end has come', async () => {
    const { answer, line, publish, idle, texts } = await setUp();
    line.connectionStatusChanged.emit('connected');
    answer();
    line.connectionStatusChanged.emit('connected');
    expect(line.sent()).toHaveLength(3);
    const outputs = [{ output_type: 'stream', name: 'stdout', text: 'all' }];
    answer({ outputs: outputs as never });
    publish(line, 'status', idle);
    expect(line.sent()).toHaveLength(4);
    answer({ outputs: outputs as never, running: false, execution_count: 7 });
    expect(texts()).toEqual(['all']);
  });

  it('has a star in its prompt until it ends, also where cells have no state', async () => {
    const { answer, setPrompt, publish, line, idle } = await setUp();
    answer({ execution_count: 7 });
    expect(setPrompt.mock.calls).toEqual([['*']]);
    publish(line, 'status', idle);
    answer({ running: false, execution_count: 7 });
    expect(setPrompt.mock.calls).toEqual([['*'], ['7']]);
  });

  it('keeps what this page has seen of it if the kernel has kept less', async () => {
    const { answer, say, texts, publish, line, idle } = await setUp();
    answer();
    say('much');
    publish(line, 'status', idle);
    answer({ running: false, cut: true });
    expect(texts()).toEqual(['much']);
  });
});

describe('A cell that another page begins', () => {
  it('is asked for, and again a moment later if the kernel does not know it yet', async () => {
    const { kernel, line, publish, answer, cell } = await setUp();
    answer({ running: false, request: 'old' });
    const begins = { msg_id: 'r', session: 'other' };
    publish(kernel, 'execute_input', {}, begins);
    publish(line, 'execute_input', {}, begins);
    expect(line.sent()).toHaveLength(2);
    answer({ running: false, request: 'old' });
    await until(() => line.sent().length === 3);
    answer();
    expect(cell.executionState).toBe('running');
  });

  it('is not asked for if it is our own', async () => {
    const { kernel, line, publish } = await setUp();
    publish(kernel, 'execute_input', {}, { msg_id: 'x', session: 's' });
    expect(line.sent()).toHaveLength(1);
  });

  it('leaves a notebook clean that the other page saves', async () => {
    const { model, answer, say, texts } = await setUp();
    answer({ sent: new Date(Date.now() + 1000).toISOString() });
    say('b');
    expect(texts()).toEqual(['b']);
    expect(model.dirty).toBe(false);
  });

  it('makes a notebook dirty if that page is gone', async () => {
    const { model, answer, say } = await setUp();
    answer();
    say('b');
    expect(model.dirty).toBe(true);
  });

  it('is left alone if it is another one in this window', async () => {
    const { answer, say, texts } = await setUp();
    answer({ sent: new Date(Date.now() + 1000).toISOString(), code: 'old()' });
    say('b');
    expect(texts()).toEqual([]);
  });
});

describe('A cell that has ended', () => {
  it('is told to the kernel once it has been saved', async () => {
    const { answer, kernel, saveState, publish, idle } = await setUp();
    answer({ running: false });
    publish(kernel, 'status', idle, { msg_id: 'own', session: 's' });
    publish(kernel, 'status', idle, { msg_id: 'others', session: 'o' });
    saveState.emit('started');
    publish(kernel, 'status', idle, { msg_id: 'later', session: 's' });
    saveState.emit('failed');
    expect(kernel.sent()).toEqual([]);
    saveState.emit('started');
    saveState.emit('completed');
    expect(kernel.sent().map(({ content }) => content)).toEqual([
      { saved: ['r', 'own', 'later'] }
    ]);
    saveState.emit('started');
    saveState.emit('completed');
    expect(kernel.sent()).toHaveLength(1);
  });

  it('is completed if the connection was lost meanwhile', async () => {
    const { answer, cell, kernel, line, idle, publish, texts } = await setUp();
    answer({ running: false, request: 'old' });
    kernel.connectionStatusChanged.emit('connecting');
    kernel.connectionStatusChanged.emit('connected');
    const outputs = [{ output_type: 'stream', name: 'stdout', text: 'all' }];
    kernel.statusChanged.emit('idle');
    publish(kernel, 'status', idle, { msg_id: 'r', session: 's' });
    expect(line.sent().at(-1)?.content).toEqual({
      session: '',
      known: ['old']
    });
    cell.executionState = 'running';
    answer({ session: 's', running: false, outputs: outputs as never });
    expect(texts()).toEqual(['all']);
    expect(cell.executionState).toBe('idle');
  });
});
