import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import { Client } from './client';
import { NotebookFollower } from './notebook';
import { PoolsModel } from './pools';
import { Stream } from './stream';
import { Telemetry } from './telemetry';
import { IPoolsModel, SETTINGS_ID, TRANSLATION_DOMAIN } from './tokens';

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
    const trans = translator.load(TRANSLATION_DOMAIN);
    const client = new Client(app.serviceManager.serverSettings, trans);
    const stream = new Stream({ client });
    const model = new PoolsModel({
      client,
      stream,
      notebooks: new NotebookFollower(tracker),
      telemetry: new Telemetry(stream),
      trans
    });
    if (registry) {
      void follow(registry, model);
    }
    void app.restored.then(() => stream.connect());
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
