import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { IPoolsModel, TRANSLATION_DOMAIN } from '../tokens';
import { Client } from './client';
import { NotebookFollower } from './notebook';
import { PoolsModel } from './pools';
import { Stream } from './stream';
import { Telemetry } from './telemetry';

/**
 * Provides the pools of the server to every other plugin.
 */
export const modelPlugin: JupyterFrontEndPlugin<IPoolsModel> = {
  id: 'jupyter-dist-server:model',
  description: 'Follows the pools of ranks on the server.',
  autoStart: true,
  provides: IPoolsModel,
  requires: [INotebookTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    translator: ITranslator
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
    void app.restored.then(() => stream.connect());
    return model;
  }
};
