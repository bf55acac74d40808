import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { JSONExt, type ReadonlyPartialJSONArray } from '@lumino/coreutils';

import { isKernelAttached } from '../model/contract';
import { IPoolsModel } from '../model/tokens';
import { tellWhatRuns, writersOf, type CellWriters } from './cellWriters';
import { RunningCell } from './runningCell';

const TARGET = 'jupyter_dist.replay';
/** Seconds: a page that is loaded again is away for less than this, before it begins to load. */
const AWAY = 30;
/** Seconds: its loading takes less than this, on a busy machine. */
const LOADING = 120;
/** Milliseconds in which others who have the notebook open say which cells they run. */
const MEETING = 2000;
/** Milliseconds until a page is taken for gone: one that had lost its connection says again within 15 s what it writes. */
const GONE = 20000;
/** A kernel that does this ends its cell, and sends no more messages of it. */
const ENDS: Kernel.Status[] = ['restarting', 'autorestarting', 'dead'];

/** What we need of JupyterLab's cells. */
export interface ICell {
  id: string;
  type: string;
  sharedModel: { source: string };
}

export interface ICodeCell {
  id: string;
  outputs: {
    readonly length: number;
    add(output: object): unknown;
    set(index: number, output: object): void;
    clear(wait?: boolean): void;
    fromJSON(outputs: object[]): void;
    toJSON(): object[];
  };
  executionCount: number | null;
  executionState: string;
}

export interface IShown {
  /** The id of the request that runs the cell. */
  request: string;
  cell_id: string;
  code: string;
  execution_count: number | null;
  outputs: object[];
  /** By the id of a display, where it is among the outputs. */
  displays: Record<string, number[]>;
  /** Whether the outputs go as soon as there is another. */
  cleared: boolean;
  /** Seconds since the cell has ended; null while it runs. */
  age: number | null;
}

/**
 * JupyterLab drops what a running cell shows once the page was loaded again. The kernel keeps it for
 * cells on ranks; so each page asks once, and is answered at once. What comes after the answer is added.
 */
export const replayPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:replay',
  description:
    'Completes the outputs of cells that ran while the page was loaded again.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel],
  activate: (
    _: JupyterFrontEnd,
    tracker: INotebookTracker,
    model: IPoolsModel
  ): void => {
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

/** Otherwise the magics may not be loaded there, and the kernel complains. */
function usesPool(
  model: IPoolsModel,
  kernel: Kernel.IKernelConnection
): boolean {
  return [...model.pools.values()].some(pool =>
    isKernelAttached(pool, kernel.id)
  );
}

/** Ask once it is known who else has the notebook open, and again whenever one of them has gone. */
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

/** Complete the outputs of cells that have run without this page, and of one that it has followed. */
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
      // One that runs anew, or that another page writes, gets its outputs there.
      if (
        !code ||
        (isRunning && !model.collaborative) ||
        !writers.mayWrite(code.id)
      ) {
        continue;
      }
      // What has ended long before has been seen, and perhaps cleared. A shared notebook says it itself.
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
  code: ICodeCell;
  shown: IShown;
  writers: CellWriters;
}

/** Show what a running cell has shown and what it shows from now on, and ask again when it has ended. */
function follow(
  panel: NotebookPanel,
  kernel: Kernel.IKernelConnection,
  { code, shown, writers }: IFollowed
): void {
  writers.take(code.id);
  restore(code, shown);
  const running = new RunningCell(code, shown);
  const listen = (_: unknown, message: KernelMessage.IIOPubMessage) => {
    const { msg_id } = message.parent_header as { msg_id?: string };
    if (msg_id === shown.request && running.take(message)) {
      end();
      ask(panel, kernel, code.id);
    }
  };
  const onScheduled = (_: unknown, { cell }: { cell: { model: unknown } }) => {
    // It runs anew, and has outputs of its own.
    if (cell.model === code) {
      end();
    }
  };
  const onStatus = (_: unknown, status: Kernel.Status) => {
    if (ENDS.includes(status)) {
      end();
    }
  };
  const end = () => {
    running.end();
    writers.leave(code.id);
    kernel.iopubMessage.disconnect(listen);
    kernel.statusChanged.disconnect(onStatus);
    kernel.disposed.disconnect(end);
    NotebookActions.executionScheduled.disconnect(onScheduled);
    panel.disposed.disconnect(end);
  };
  kernel.iopubMessage.connect(listen);
  kernel.statusChanged.connect(onStatus);
  kernel.disposed.connect(end);
  NotebookActions.executionScheduled.connect(onScheduled);
  panel.disposed.connect(end);
}

/** Files of an older format have no ids; then the source tells the cell. */
export function find(
  cells: Iterable<ICell>,
  shown: IShown
): ICodeCell | undefined {
  const all = [...cells].filter(({ type }) => type === 'code');
  const cell =
    all.find(({ id }) => id === shown.cell_id) ??
    all.find(({ sharedModel }) => sharedModel.source === shown.code);
  return cell as unknown as ICodeCell | undefined;
}

export function restore(code: ICodeCell, shown: IShown): void {
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

/** Setting the same outputs again would make the notebook one with unsaved changes. */
function isSame(outputs: object[], others: object[]): boolean {
  return JSONExt.deepEqual(
    outputs as ReadonlyPartialJSONArray,
    others as ReadonlyPartialJSONArray
  );
}
