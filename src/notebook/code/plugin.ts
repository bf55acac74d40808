import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { CommandIDs, PANEL_ID } from '../../model/tokens';
import { loadTranslations, trans } from '../../model/trans';
import { insertCode } from '../../ui/codeCells';

/**
 * Inserts the code that does what a button did, or that is for a rank or a GPU.
 */
export const codePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:code',
  description: 'Inserts cells for ranks and GPUs into the notebook.',
  autoStart: true,
  requires: [INotebookTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    translator: ITranslator
  ): void => {
    loadTranslations(translator);
    const { commands, shell } = app;
    app.commands.addCommand(CommandIDs.insertCode, {
      label: ({ label }) =>
        typeof label === 'string' ? label : trans.__('Insert Cell'),
      caption: trans.__('Insert a cell with this code below the active cell.'),
      isEnabled: () => Boolean(tracker.currentWidget?.content.model),
      execute: async ({ source, run }) => {
        const panel = tracker.currentWidget;
        const code =
          typeof source === 'string'
            ? source
            : // From the context menu: what was clicked carries its code.
              // Outputs may have such attributes too, with code of anybody's.
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
  }
};
