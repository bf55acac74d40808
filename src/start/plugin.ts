import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import { Memory } from '../model/memory';
import { IPoolsModel, TRANSLATION_DOMAIN } from '../tokens';
import { IStartModel, StartModel } from './model';

const KEY = 'jupyter-dist-server:start';

/**
 * Provides what can be chosen of a new pool, and remembers it.
 *
 * In JupyterLab's state and not in the notebook: which GPUs are free, and the values of environment
 * variables, are nothing to hand on with a file.
 */
export const startPlugin: JupyterFrontEndPlugin<IStartModel> = {
  id: 'jupyter-dist-server:start',
  description: 'Remembers what was chosen for the pool of each notebook.',
  autoStart: true,
  provides: IStartModel,
  requires: [IPoolsModel, ITranslator],
  optional: [IStateDB],
  activate: (
    _: JupyterFrontEnd,
    pools: IPoolsModel,
    translator: ITranslator,
    state: IStateDB | null
  ): IStartModel =>
    new StartModel(
      pools,
      new Memory(state, KEY),
      translator.load(TRANSLATION_DOMAIN)
    )
};
