import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import { CommandIDs, IPoolsModel, TRANSLATION_DOMAIN } from '../model/tokens';
import { Memory } from '../model/memory';
import { addToPalette } from '../ui/palette';
import { IStartModel } from '../model/start';
import { Clock } from '../ui/clock';
import { ranksIcon } from '../ui/icon';
import { DistPanel } from './panel';
import { showErrors } from './showErrors';

/**
 * Puts the panel into the left sidebar.
 */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:panel',
  description: 'Shows the ranks and GPUs of the current notebook.',
  autoStart: true,
  requires: [IPoolsModel, IStartModel, ITranslator],
  optional: [ILayoutRestorer, IStateDB, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: IPoolsModel,
    start: IStartModel,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
    const panel = new DistPanel(
      {
        model,
        start,
        memory: new Memory(state, 'jupyter-dist-server:panel'),
        commands: app.commands,
        clock: new Clock(),
        trans
      },
      translator
    );
    app.shell.add(panel, 'left', { rank: 350, type: 'Distributed' });
    restorer?.add(panel, panel.id);
    app.commands.addCommand(CommandIDs.openPanel, {
      label: trans.__('Show Ranks & GPUs'),
      caption: trans.__('Show the panel with the ranks and the GPUs.'),
      icon: ranksIcon,
      execute: () => app.shell.activateById(panel.id)
    });
    addToPalette(palette, trans, [CommandIDs.openPanel]);
    const open = () => app.shell.activateById(panel.id);
    showErrors(model, panel, open, trans);
  }
};
