import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ITranslator } from '@jupyterlab/translation';

import { IPoolsModel, TRANSLATION_DOMAIN } from '../../model/tokens';
import { RunningPools } from './manager';

/**
 * Lists the pools in JupyterLab's Running panel.
 */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:running',
  description: 'Lists the pools of ranks beside terminals and kernels.',
  autoStart: true,
  requires: [IPoolsModel, ITranslator],
  optional: [IRunningSessionManagers],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    translator: ITranslator,
    managers: IRunningSessionManagers | null
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
    managers?.add(new RunningPools(model, commands, trans));
  }
};
