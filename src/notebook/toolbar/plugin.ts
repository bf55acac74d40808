import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { IPoolsModel, TRANSLATION_DOMAIN } from '../../model/tokens';
import { IStartModel } from '../../model/start';
import { RanksButton } from './ranksButton';

/**
 * Puts the pool of a notebook into its toolbar; the schema says where.
 */
export const toolbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:toolbar',
  description: "Shows a notebook's ranks in its toolbar.",
  autoStart: true,
  requires: [IPoolsModel, IStartModel, INotebookTracker, ITranslator],
  optional: [IToolbarWidgetRegistry],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    model: IPoolsModel,
    start: IStartModel,
    tracker: INotebookTracker,
    translator: ITranslator,
    toolbars: IToolbarWidgetRegistry | null
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
    toolbars?.addFactory<NotebookPanel>('Notebook', 'dist-ranks', panel => {
      const makeCurrent = () => {
        if (tracker.currentWidget !== panel) {
          shell.activateById(panel.id);
        }
      };
      return new RanksButton({
        ...{ panel, model, start, commands, makeCurrent, trans }
      });
    });
  }
};
