import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import { withoutValues } from './draft';
import type { Draft } from './draft';
import { IStartModel, StartModel } from './startModel';
import { IPoolsModel, TRANSLATION_DOMAIN } from './tokens';
import { Memory } from './uiState';

const KEY = 'jupyter-dist-server:start';

/**
 * Provides what can be chosen of a new pool, and remembers it.
 *
 * In JupyterLab's state and not in the notebook: which GPUs are free, and the values of environment
 * variables, are nothing to hand on with a file. The state is a plain file too, so the values are
 * not in it.
 */
export const startPlugin: JupyterFrontEndPlugin<IStartModel> = {
  id: 'jupyter-dist-server:start',
  description: 'Remembers what was chosen for the pool of each notebook.',
  autoStart: true,
  provides: IStartModel,
  requires: [IPoolsModel, ITranslator],
  optional: [IStateDB],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    pools: IPoolsModel,
    translator: ITranslator,
    state: IStateDB | null
  ): IStartModel => {
    const memory = new Memory(state, KEY, {
      toKeep: draft => withoutValues(draft as Draft)
    });
    const trans = translator.load(TRANSLATION_DOMAIN);
    const model = new StartModel(pools, memory, trans);
    serviceManager.contents.fileChanged.connect((_, change) =>
      model.follow(change)
    );
    return model;
  }
};
