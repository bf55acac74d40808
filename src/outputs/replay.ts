import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { isKernelAttached } from '../model/contract';
import { IPoolsModel } from '../model/tokens';
import { isSame } from '../ui/useModel';
import { tellWhatRuns, writersOf, type CellWriters } from './cellWriters';
import { RunningCell, type IShown } from './runningCell';

const TARGET = 'jupyter_dist.replay';
/** The most seconds from the end of a page to its reload. */
const AWAY = 30;
/** The most seconds that a page takes to load, also on a busy machine. */
const LOADING = 120;
/** In so many milliseconds, other pages with this notebook say which cells they run. */
const MEETING = 2000;
/** After so many milliseconds, a page counts as gone. After a lost connection, it is back within 15 s. */
const GONE = 20000;
/** These end a cell without a message. */
const ENDS: Kernel.Status[] = ['restarting', 'autorestarting', 'dead'];

/**
 * JupyterLab drops the output of a running cell when the page is reloaded. The kernel keeps it for cells
 * on ranks: each page asks for it once, and adds the output that arrives after the answer.
 */
export const replayPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:replay',
  description:
    'Completes the outputs of cells that ran while the page was loaded again.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel],
  activate: (_, tracker: INotebookTracker, model: IPoolsModel): void => {
    tellWhatRuns();
    const asked = new WeakSet<Kernel.IKernelConnection>();
    const askAll = () =>
      tracker.forEach(panel => {
        const kernel = panel.sessionContext.session?.kernel;
        if (kernel && !asked.has(kernel) && usesPool(model, kernel)) {
          asked.add(kernel);
          void meet(panel, kernel);
        }
      });
    model.changed.connect(askAll);
    tracker.widgetAdded.connect((_, panel) => {
      panel.sessionContext.kernelChanged.connect(askAll);
    });
    askAll();
  }
};

/** In another kernel, the magics may not be loaded: it would log an error. */
function usesPool(
  model: IPoolsModel,
  kernel: Kernel.IKernelConnection
): boolean {
  return [...model.pools.values()].some(pool =>
    isKernelAttached(pool, kernel.id)
  );
}

/** Ask once other pages have said what they run, and again whenever one of them has gone. */
async function meet(
  panel: NotebookPanel,
  kernel: Kernel.IKernelConnection
): Promise<void> {
  const { model, ready } = panel.context;
  if (model.collaborative) {
    await ready;
    writersOf(model).follow(() => {
      setTimeout(() => ask(panel, kernel), GONE);
    });
    await new Promise(resolve => setTimeout(resolve, MEETING));
  }
  ask(panel, kernel);
}

/** Complete the outputs of cells that ran without this page, and of the one that it has followed. */
function ask(
  panel: NotebookPanel,
  kernel: Kernel.IKernelConnection,
  followed?: string
): void {
  if (panel.isDisposed || kernel.isDisposed) {
    return;
  }
  const begun = performance.now();
  const sinceNavigation = begun / 1000;
  const isNew = followed === undefined && sinceNavigation < LOADING;
  const loading = isNew ? sinceNavigation : 0;
  const comm = kernel.createComm(TARGET);
  comm.onMsg = async ({ content }) => {
    const waited = (performance.now() - begun) / 1000;
    const { cells } = content.data as unknown as { cells: IShown[] };
    await panel.context.ready;
    const { model } = panel.content;
    if (!model) {
      return;
    }
    const writers = writersOf(model);
    for (const shown of cells) {
      const code = find(model.cells, shown);
      const isRunning = code?.executionState === 'running';
      // A cell that runs again, or that another page writes, gets its outputs there.
      if (
        !code ||
        (isRunning && !model.collaborative) ||
        !writers.mayWrite(code.id)
      ) {
        continue;
      }
      // The output of an old cell has been seen, and perhaps cleared. A shared notebook has a state.
      const isMissed = model.collaborative
        ? isRunning
        : (shown.age ?? 0) < waited + loading + AWAY;
      if (shown.age === null) {
        follow(panel, kernel, { code, shown, writers });
      } else if (isMissed || code.id === followed) {
        restore(code, shown);
      }
    }
  };
  // On the control channel, where the kernel answers while a cell runs.
  const { clientId: session, username } = kernel;
  kernel.sendControlMessage(
    KernelMessage.createMessage({
      ...{ channel: 'control', msgType: 'comm_open', session, username },
      content: { comm_id: comm.commId, target_name: TARGET, data: {} }
    } as unknown as KernelMessage.IOptions<KernelMessage.IDebugRequestMsg>)
  );
}

interface IFollowed {
  code: ICodeCellModel;
  shown: IShown;
  writers: CellWriters;
}

/** Show the output of a running cell so far and from now on, and ask again when it has ended. */
function follow(
  panel: NotebookPanel,
  kernel: Kernel.IKernelConnection,
  { code, shown, writers }: IFollowed
): void {
  writers.take(code.id);
  restore(code, shown);
  const running = new RunningCell(code, shown);
  const end = () => {
    running.end();
    writers.leave(code.id);
    Signal.disconnectReceiver(running);
  };
  kernel.iopubMessage.connect((_, message) => {
    const { msg_id } = message.parent_header as { msg_id?: string };
    if (msg_id === shown.request && running.take(message)) {
      end();
      ask(panel, kernel, code.id);
    }
  }, running);
  kernel.statusChanged.connect((_, status) => {
    if (ENDS.includes(status)) {
      end();
    }
  }, running);
  NotebookActions.executionScheduled.connect((_, { cell }) => {
    // It runs again.
    if (cell.model === code) {
      end();
    }
  }, running);
  kernel.disposed.connect(end, running);
  panel.disposed.connect(end, running);
}

/** Files of an older format have no ids; then the source identifies the cell. */
export function find(
  cells: Iterable<ICellModel>,
  shown: IShown
): ICodeCellModel | undefined {
  const all = [...cells].filter(
    (cell): cell is ICodeCellModel => cell.type === 'code'
  );
  return (
    all.find(({ id }) => id === shown.cell_id) ??
    all.find(({ sharedModel }) => sharedModel.source === shown.code)
  );
}

export function restore(code: ICodeCellModel, shown: IShown): void {
  // Setting the same outputs again would mark the notebook as changed.
  if (!isSame(code.outputs.toJSON(), shown.outputs)) {
    code.outputs.fromJSON(shown.outputs);
  }
  if (code.executionCount !== shown.execution_count) {
    code.executionCount = shown.execution_count;
  }
  if (code.executionState === 'running') {
    // The page that ran it is gone.
    code.executionState = 'idle';
  }
}
