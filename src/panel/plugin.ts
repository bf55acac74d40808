import { ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import {
  CommandIDs,
  IPoolsModel,
  SETTINGS_ID,
  TRANSLATION_DOMAIN
} from '../tokens';
import { Memory } from '../model/memory';
import { IStartModel } from '../start/model';
import { Clock } from './clock';
import { ranksIcon } from './icon';
import { DistPanel } from './panel';
import { showErrors } from './showErrors';

/**
 * Puts the panel into the left sidebar.
 */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: SETTINGS_ID,
  description: 'Shows the ranks and GPUs of the current notebook.',
  autoStart: true,
  requires: [IPoolsModel, IStartModel, ITranslator],
  optional: [ISettingRegistry, ILayoutRestorer, IStateDB],
  activate: async (
    app: JupyterFrontEnd,
    model: IPoolsModel,
    start: IStartModel,
    translator: ITranslator,
    registry: ISettingRegistry | null,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null
  ): Promise<void> => {
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
    showErrors(model, panel, () => app.shell.activateById(panel.id));

    if (registry) {
      const settings = await registry.load(SETTINGS_ID);
      const apply = () => {
        model.setPreferredRanks(
          settings.get('defaultRanks').composite as number
        );
        model.setWaitLimit(settings.get('waitLimit').composite as number);
      };
      settings.changed.connect(apply);
      apply();
    }
  }
};
