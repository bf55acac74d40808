import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

/**
 * A part of a model; the component is drawn again only when that part is another one.
 *
 * `read` must answer the same object as long as nothing has changed.
 */
export function useModel<M extends { changed: ISignal<M, void> }, T>(
  model: M,
  read: (model: M) => T
): T {
  const { changed } = model;
  const subscribe = useCallback(
    (listener: () => void) => {
      const slot = () => listener();
      changed.connect(slot);
      return () => {
        changed.disconnect(slot);
      };
    },
    [changed]
  );
  return useSyncExternalStore(subscribe, () => read(model));
}
