import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IApiError } from '../model/contract';
import type { IPoolsModel } from '../model/tokens';

/**
 * Tell of a request that failed while the panel, which says why, is not in sight.
 */
export function showErrors(
  model: IPoolsModel,
  panel: { readonly isVisible: boolean },
  open: () => void,
  trans: TranslationBundle
): void {
  // Who comes back to a notebook has seen its error.
  const known = new WeakSet<IApiError>();
  model.changed.connect(() => {
    const { error } = model;
    if (error && !known.has(error)) {
      known.add(error);
      if (!panel.isVisible) {
        const words = [error.message, error.hint].filter(Boolean).join(' ');
        Notification.error(words, {
          autoClose: false,
          actions: [{ label: trans.__('Show Ranks & GPUs'), callback: open }]
        });
      }
    }
  });
}
