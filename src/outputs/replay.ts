import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { JSONExt } from '@lumino/coreutils';
import type { ReadonlyPartialJSONArray } from '@lumino/coreutils';

import { isKernelAttached } from '../model/contract';
import { IPoolsModel } from '../model/tokens';

const TARGET = 'jupyter_dist.replay';
/** Seconds: a page that is loaded again is away for less than this. */
const AWAY = 30;

/** What we need of JupyterLab's cells. */
interface ICell {
  id: string;
  type: string;
  sharedModel: { source: string };
}

interface ICodeCell {
  outputs: { fromJSON(outputs: object[]): void; toJSON(): object[] };
  executionCount: number | null;
  executionState: string;
}

export interface IShown {
  cell_id: string;
  code: string;
  execution_count: number | null;
  outputs: object[];
  /** Seconds since the cell has ended. */
  age: number;
}

/**
 * JupyterLab drops what a running cell shows once the page was loaded again. The kernel keeps it for
 * cells on ranks; so each page asks once, and is answered when no cell runs any more.
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
    const asked = new WeakSet<Kernel.IKernelConnection>();
    const askAll = () =>
      tracker.forEach(panel => {
        const kernel = panel.sessionContext.session?.kernel;
        if (kernel && !asked.has(kernel) && usesPool(model, kernel)) {
          asked.add(kernel);
          ask(panel, kernel);
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

function ask(panel: NotebookPanel, kernel: Kernel.IKernelConnection): void {
  const begun = performance.now();
  const comm = kernel.createComm(TARGET);
  comm.onMsg = async ({ content }) => {
    const waited = (performance.now() - begun) / 1000;
    const { cells } = content.data as unknown as { cells: IShown[] };
    await panel.context.ready;
    for (const shown of cells) {
      // What has ended long before has been seen, and perhaps cleared.
      if (shown.age < waited + AWAY) {
        restore(panel.content.model?.cells ?? [], shown);
      }
    }
  };
  comm.open();
}

/** Files of an older format have no ids; then the source tells the cell. */
export function restore(cells: Iterable<ICell>, shown: IShown): void {
  const all = [...cells].filter(({ type }) => type === 'code');
  const cell =
    all.find(({ id }) => id === shown.cell_id) ??
    all.find(({ sharedModel }) => sharedModel.source === shown.code);
  const code = cell as unknown as ICodeCell | undefined;
  // A cell that runs again gets outputs of its own.
  if (!code || code.executionState === 'running') {
    return;
  }
  if (!isSame(code.outputs.toJSON(), shown.outputs)) {
    code.outputs.fromJSON(shown.outputs);
  }
  if (code.executionCount !== shown.execution_count) {
    code.executionCount = shown.execution_count;
  }
}

/** Setting the same outputs again would make the notebook one with unsaved changes. */
function isSame(outputs: object[], others: object[]): boolean {
  return JSONExt.deepEqual(
    outputs as ReadonlyPartialJSONArray,
    others as ReadonlyPartialJSONArray
  );
}
