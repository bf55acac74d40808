import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator } from '@jupyterlab/translation';

import { Client } from './restClient';
import { withoutValues } from './startDraft';
import type { Draft } from './startDraft';
import { CurrentNotebook, NotebookKernels } from './notebook';
import { PoolsModel } from './pools';
import { QueueModel } from './queue';
import { IStartModel, StartModel } from './startModel';
import { Stream } from './stream';
import { Telemetry } from './telemetry';
import { ICurrentNotebook, IPoolsModel, SETTINGS_ID } from './tokens';
import { loadTranslations } from './trans';
import { UiState } from './uiState';

/**
 * Provides the pools of the server to every other plugin; the settings, which concern more than the
 * panel, are its own.
 */
export const modelPlugin: JupyterFrontEndPlugin<IPoolsModel> = {
  id: SETTINGS_ID,
  description: 'Follows the pools of ranks on the server.',
  autoStart: true,
  provides: IPoolsModel,
  requires: [INotebookTracker, ITranslator],
  optional: [ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    translator: ITranslator,
    registry: ISettingRegistry | null
  ): IPoolsModel => {
    loadTranslations(translator);
    const client = new Client(app.serviceManager.serverSettings);
    const stream = new Stream(client);
    const telemetry = new Telemetry(stream);
    const model = new PoolsModel({
      client,
      stream,
      kernels: new NotebookKernels(tracker),
      telemetry,
      queue: new QueueModel(client, stream.received, telemetry)
    });
    if (registry) {
      void follow(registry, model);
    }
    void app.restored.then(() => stream.connect());
    return model;
  }
};

/** Provides the notebook that the user looks at. */
export const currentNotebookPlugin: JupyterFrontEndPlugin<ICurrentNotebook> = {
  id: 'jupyter-dist-server:current-notebook',
  description: 'Follows the current notebook and its pool.',
  autoStart: true,
  provides: ICurrentNotebook,
  requires: [INotebookTracker, IPoolsModel],
  activate: (
    _: JupyterFrontEnd,
    tracker: INotebookTracker,
    pools: IPoolsModel
  ): ICurrentNotebook => new CurrentNotebook(tracker, pools)
};

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
  requires: [IPoolsModel, ICurrentNotebook],
  optional: [IStateDB],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    pools: IPoolsModel,
    current: ICurrentNotebook,
    state: IStateDB | null
  ): IStartModel => {
    const choices = new UiState(state, 'jupyter-dist-server:start', draft =>
      withoutValues(draft as Draft)
    );
    const model = new StartModel(pools, current, choices);
    serviceManager.contents.fileChanged.connect((_, change) =>
      model.follow(change)
    );
    return model;
  }
};

async function follow(
  registry: ISettingRegistry,
  model: PoolsModel
): Promise<void> {
  const settings = await registry.load(SETTINGS_ID);
  const apply = () => {
    model.setPreferredRanks(settings.get('defaultRanks').composite as number);
    model.setWaitLimit(settings.get('waitLimit').composite as number);
  };
  settings.changed.connect(apply);
  apply();
}
