import type { IApiError } from '../model/contract';
import type { IPoolsModel } from '../tokens';

/**
 * Have the panel opened when a request fails while it is not in sight: only there it is said why.
 */
export function showErrors(
  model: IPoolsModel,
  panel: { readonly isVisible: boolean },
  open: () => void
): void {
  // Who comes back to a notebook has seen its error.
  const known = new WeakSet<IApiError>();
  model.changed.connect(() => {
    const { error } = model;
    if (error && !known.has(error)) {
      known.add(error);
      if (!panel.isVisible) {
        open();
      }
    }
  });
}
