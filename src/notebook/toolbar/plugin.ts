import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';

import { hasMode, hasRanks, poolOf } from '../../model/contract';
import { IStartModel } from '../../model/startModel';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToPalette } from '../../ui/palette';
import { RanksButton } from './ranksButton';

/** Shows a notebook's pool in its toolbar, and switches whether all its cells run on ranks. */
export const toolbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:toolbar',
  description: "Shows a notebook's ranks in its toolbar.",
  autoStart: true,
  requires: [IPoolsModel, IStartModel, INotebookTracker],
  optional: [IToolbarWidgetRegistry, ICommandPalette],
  activate: (
    { commands, shell },
    model: IPoolsModel,
    start: IStartModel,
    tracker: INotebookTracker,
    toolbars: IToolbarWidgetRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    toolbars?.addFactory<NotebookPanel>('Notebook', 'dist-ranks', panel => {
      const makeCurrent = () => {
        if (tracker.currentWidget !== panel) {
          shell.activateById(panel.id);
        }
      };
      return new RanksButton({
        ...{ panel, model, start, commands, makeCurrent }
      });
    });

    const command = CommandIDs.toggleMode;
    const kernelId = () =>
      tracker.currentWidget?.sessionContext.session?.kernel?.id;
    const pool = () => {
      const found = poolOf(kernelId(), model.pools.values());
      return found && hasRanks(found) ? found : null;
    };
    const isOn = () => hasMode(pool(), kernelId());
    commands.addCommand(command, {
      label: trans.__('Run All Cells on Ranks'),
      caption: trans.__(
        'Run every cell on all ranks, not only %%distributed cells.'
      ),
      isEnabled: () => pool() !== null,
      isToggleable: true,
      isToggled: isOn,
      execute: async () => {
        const kernel = kernelId();
        if (kernel) {
          await model.setMode(kernel, !isOn());
        }
      }
    });
    addToPalette(palette, [command]);
    const notify = () => commands.notifyCommandChanged(command);
    model.changed.connect(notify);
    tracker.currentChanged.connect(notify);
  }
};
