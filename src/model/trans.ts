import { nullTranslator } from '@jupyterlab/translation';
import type { ITranslator } from '@jupyterlab/translation';

/** The messages in the user's language. */
export let trans = nullTranslator.load('');

/** Each plugin with messages calls this first, unless it requires `IPoolsModel`, whose plugin has done so. */
export function loadTranslations(translator: ITranslator): void {
  trans = translator.load('jupyter_dist_server');
}
