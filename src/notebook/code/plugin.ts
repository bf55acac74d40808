import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { SessionContextDialogs, showErrorMessage } from '@jupyterlab/apputils';
import type { ISessionContext } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { poolOf } from '../../model/contract';
import { NotebookKernels } from '../../model/notebook';
import { CommandIDs, IPoolsModel, LOAD, PANEL_ID } from '../../model/tokens';
import { trans } from '../../model/trans';
import { insertCode } from '../../ui/codeCells';

/** Inserts code into the current notebook, and lets it use a pool that has lost its kernel. */
export const codePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:code',
  description: 'Inserts cells for ranks and GPUs into the notebook.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel, ITranslator],
  activate: (
    app,
    tracker: INotebookTracker,
    model: IPoolsModel,
    translator: ITranslator
  ): void => {
    const { commands, shell } = app;
    commands.addCommand(CommandIDs.insertCode, {
      label: ({ label }) =>
        typeof label === 'string' ? label : trans.__('Insert Cell'),
      caption: trans.__('Insert a cell with this code below the active cell.'),
      isEnabled: () => Boolean(tracker.currentWidget?.content.model),
      execute: async ({ source, run }) => {
        const panel = tracker.currentWidget;
        const code =
          typeof source === 'string'
            ? source
            : // From the context menu: the clicked element has the code. Elements outside the panel, such as
              // outputs, may have an attribute with malicious code.
              app.contextMenuHitTest(
                node =>
                  'distCode' in node.dataset &&
                  node.closest(`#${PANEL_ID}`) !== null
              )?.dataset.distCode;
        if (!panel || code === undefined) {
          return;
        }
        insertCode(panel, code, Boolean(run));
        shell.activateById(panel.id);
        if (run) {
          await commands.execute('notebook:run-cell');
        }
      }
    });
    tracker.currentChanged.connect(() =>
      commands.notifyCommandChanged(CommandIDs.insertCode)
    );

    const kernels = new NotebookKernels(tracker);
    const dialogs = new SessionContextDialogs({ translator });
    commands.addCommand(CommandIDs.attachPool, {
      label: trans.__('Use Pool Here'),
      caption: trans.__('Use these ranks here (runs %dist_attach)'),
      isEnabled: () => tracker.currentWidget !== null,
      execute: async args => {
        const id = String(args.pool);
        const context = tracker.currentWidget?.sessionContext;
        const kernel = context?.session?.kernel;
        try {
          if (kernel && kernel.id === model.pools.get(id)?.kernel_id) {
            // A new process with the same kernel ID finds its pool.
            await kernel.restart();
            const why = await kernels.runMagic(kernel.id, LOAD);
            if (why) {
              throw new Error(why);
            }
            return;
          }
          if (context && !kernel) {
            const mustChoose = await context.startKernel();
            if (mustChoose) {
              await dialogs.selectKernel(context);
            }
            if (!context.session?.kernel) {
              return;
            }
          }
          const source = `${LOAD}\n%dist_attach ${id}`;
          await commands.execute(CommandIDs.insertCode, { source, run: true });
        } catch (error) {
          const title = trans.__('The pool could not be used here');
          await showErrorMessage(title, error as Error);
        }
      }
    });
    loadAfterRestart(tracker, model, kernels);
  }
};

/** A restarted kernel has no magics. Loading them makes the notebook use its pool, which still runs. */
function loadAfterRestart(
  tracker: INotebookTracker,
  model: IPoolsModel,
  kernels: NotebookKernels
): void {
  const restarting = new WeakSet<ISessionContext>();
  const load = (context: ISessionContext) => {
    if (restarting.delete(context)) {
      const id = context.session?.kernel?.id ?? '';
      if (poolOf(id, model.pools.values())?.ended === null) {
        void kernels.runMagic(id, LOAD);
      }
    }
  };
  tracker.widgetAdded.connect((_, { sessionContext }) => {
    sessionContext.statusChanged.connect((context, status) => {
      if (status === 'restarting' || status === 'autorestarting') {
        restarting.add(context);
      } else if (status === 'idle') {
        load(context);
      }
    });
    // After a restart by the user, cells wait for this connection: the magics run before them.
    sessionContext.connectionStatusChanged.connect((context, status) => {
      if (status === 'connected') {
        load(context);
      }
    });
  });
}
