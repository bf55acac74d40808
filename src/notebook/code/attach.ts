import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { NotebookKernels } from '../../model/notebook';
import {
  CommandIDs,
  IPoolsModel,
  LOAD,
  TRANSLATION_DOMAIN
} from '../../model/tokens';

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
    const trans = translator.load(TRANSLATION_DOMAIN);
    const kernels = new NotebookKernels(tracker);
    commands.addCommand(CommandIDs.attachPool, {
      label: trans.__('Use Pool Here'),
      caption: trans.__('Use these ranks here (runs %dist_attach)'),
      isEnabled: () => tracker.currentWidget !== null,
      execute: async args => {
        const id = String(args.pool);
        const context = tracker.currentWidget?.sessionContext;
        const kernel = context?.session?.kernel;
        if (kernel && kernel.id === model.pools.get(id)?.kernel_id) {
          // It is its own: a new process with the same id finds it.
          await kernel.restart();
          await kernels.runMagic(kernel.id, LOAD);
          return;
        }
        if (context && !kernel) {
          await context.startKernel();
        }
        const source = `${LOAD}\n%dist_attach ${id}`;
        await commands.execute(CommandIDs.insertCode, { source, run: true });
      }
    });
  }
};
