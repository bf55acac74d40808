import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

import { isKernelAttached } from '../model/contract';
import { IPoolsModel } from '../model/tokens';
import { tellWhatRuns, writersOf } from './cellWriters';
import { FollowCells } from './followCells';

/** In so many milliseconds, other pages with this notebook say which cells they run. */
const MEETING = 2000;
/** After so many milliseconds, a page counts as gone. After a lost connection, it is back within 15 s. */
const GONE = 20000;

/**
 * JupyterLab drops the output of a running cell when the page is reloaded. The kernel keeps it until a page
 * has saved it: each page asks for what it has not, and adds the output that arrives after the answer.
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
  await ready;
  if (panel.isDisposed || kernel.isDisposed) {
    return;
  }
  const cells = new FollowCells(panel, kernel);
  if (model.collaborative) {
    writersOf(model).follow(() => {
      setTimeout(() => cells.ask(), GONE);
    });
    await new Promise(resolve => setTimeout(resolve, MEETING));
  }
  cells.ask();
}
