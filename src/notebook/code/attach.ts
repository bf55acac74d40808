import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { SessionContextDialogs, showErrorMessage } from '@jupyterlab/apputils';
import type { ISessionContext } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { poolOf } from '../../model/contract';
import { NotebookKernels } from '../../model/notebook';
import {
  CommandIDs,
  IPoolsModel,
  LOAD,
  TRANSLATION_DOMAIN
} from '../../model/tokens';

/** Lets a notebook use a pool again that has lost its kernel, or whose kernel was restarted. */
export const attachPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:attach',
  description: 'Uses pools whose kernel has ended or was restarted.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    tracker: INotebookTracker,
    model: IPoolsModel,
    translator: ITranslator
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
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
