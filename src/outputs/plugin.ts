import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';

import { TRANSLATION_DOMAIN } from '../model/tokens';
import { addRenderers } from './renderers';

/**
 * Shows what a cell has put out on several ranks merged, or one rank's alone.
 */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:outputs',
  description: 'Tabs above the outputs of cells on several ranks.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator
  ): void => addRenderers(rendermime, translator.load(TRANSLATION_DOMAIN))
};
