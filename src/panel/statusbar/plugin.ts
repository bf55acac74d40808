import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';

import {
  CommandIDs,
  IPoolsModel,
  TRANSLATION_DOMAIN
} from '../../model/tokens';
import { StatusItem } from './item';

/**
 * Puts the current notebook's pool into the status bar.
 */
export const statusBarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:status-bar',
  description: 'Shows the ranks of the current notebook in the status bar.',
  autoStart: true,
  requires: [IPoolsModel, ITranslator],
  optional: [IStatusBar],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    translator: ITranslator,
    statusBar: IStatusBar | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const item = new StatusItem(
      model,
      () => void commands.execute(CommandIDs.openPanel),
      translator.load(TRANSLATION_DOMAIN)
    );
    statusBar.registerStatusItem('jupyter-dist-server:ranks', {
      item,
      align: 'left',
      rank: 20,
      isActive: () => item.isActive,
      activeStateChanged: item.activeChanged
    });
  }
};
