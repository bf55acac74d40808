import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import type { IApiError, IPool } from '../model/contract';
import { IStartModel } from '../model/startModel';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { UiState } from '../model/uiState';
import { VariablesModel } from '../model/variables';
import { Clock } from '../ui/clock';
import { openNotebook } from '../ui/dialogs';
import { ranksIcon } from '../ui/icons';
import { addToPalette } from '../ui/palette';
import { joinSentences } from '../words/format';
import { DistPanel } from './panel';
import { notifyWhenReady } from './readyNotice';

/** Puts the panel into the left sidebar. */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:panel',
  description: 'Shows the ranks and GPUs of the current notebook.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook, IStartModel, ITranslator],
  optional: [ILayoutRestorer, IStateDB, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IPoolsModel,
    current: ICurrentNotebook,
    start: IStartModel,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    palette: ICommandPalette | null
  ): void => {
    const panel = new DistPanel(
      {
        model,
        current,
        start,
        variables: new VariablesModel(current, model.requests),
        uiState: new UiState(state, 'jupyter-dist-server:panel'),
        commands: app.commands,
        clock: new Clock()
      },
      translator,
      app.restored
    );
    app.shell.add(panel, 'left', { rank: 350, type: 'Distributed' });
    restorer?.add(panel, panel.id);
    const open = () => app.shell.activateById(panel.id);
    app.commands.addCommand(CommandIDs.openPanel, {
      label: trans.__('Show Ranks & GPUs'),
      caption: trans.__('Show the panel with the ranks and the GPUs.'),
      icon: ranksIcon,
      execute: open
    });
    app.commands.addCommand(CommandIDs.showQueue, {
      label: trans.__('Show Queue'),
      caption: trans.__('Show the jobs that run and wait.'),
      execute: () => {
        open();
        panel.showQueue();
      }
    });
    addToPalette(palette, [CommandIDs.openPanel, CommandIDs.showQueue]);
    showErrors(current, panel, open);
    const openIts = ({ name }: IPool) => void openNotebook(name, app.commands);
    notifyWhenReady(model, openIts);
  }
};

/** Tell of a request that failed while the panel, which says why, is not in sight. */
export function showErrors(
  current: ICurrentNotebook,
  panel: { readonly isVisible: boolean },
  open: () => void
): void {
  // Who comes back to a notebook has seen its error.
  const known = new WeakSet<IApiError>();
  current.changed.connect(() => {
    const { error } = current;
    if (error && !known.has(error)) {
      known.add(error);
      if (!panel.isVisible) {
        // With offers, the hint names their options of the magics; the panel has buttons.
        const hint = error.offers?.length ? '' : error.hint;
        const words = joinSentences([error.message, hint]);
        Notification.error(words, {
          autoClose: false,
          actions: [{ label: trans.__('Show Ranks & GPUs'), callback: open }]
        });
      }
    }
  });
}
