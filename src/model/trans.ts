import { nullTranslator } from '@jupyterlab/translation';
import type { ITranslator } from '@jupyterlab/translation';

/** The messages in the user's language. */
export let trans = nullTranslator.load('');

/** To be called by plugins that do not require `IPoolsModel`, whose plugin has called it before others. */
export function loadTranslations(translator: ITranslator): void {
  trans = translator.load('jupyter_dist_server');
}
