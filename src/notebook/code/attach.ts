import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { SessionContextDialogs, showErrorMessage } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { NotebookKernels } from '../../model/notebook';
import { CommandIDs, IPoolsModel, LOAD } from '../../model/tokens';
import { trans } from '../../model/trans';

/**
 * Gives a pool that has lost its kernel to the current notebook, which may have lost its kernel as well.
 */
export const attachPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:attach',
  description: 'Uses a pool whose kernel is gone in the current notebook.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    tracker: INotebookTracker,
    model: IPoolsModel,
    translator: ITranslator
  ): void => {
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
            // It is its own: a new process with the same id finds it.
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
          // Buttons would say nothing.
          await showErrorMessage(
            trans.__('The pool could not be used here'),
            error instanceof Error ? error : String(error)
          );
        }
      }
    });
  }
};
