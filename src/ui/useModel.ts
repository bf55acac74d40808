import { JSONExt } from '@lumino/coreutils';
import type { JSONValue } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import { useCallback, useState, useSyncExternalStore } from 'react';

/**
 * A part of a model; the component is drawn again only when that part is another one.
 *
 * `read` answers the same object as long as nothing has changed, or `isEqual` says when two are the same.
 */
export function useModel<M extends { changed: ISignal<unknown, void> }, T>(
  model: M,
  read: (model: M) => T,
  isEqual: (one: T, other: T) => boolean = Object.is
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
  const [keep] = useState(() => keeper(isEqual));
  return useSyncExternalStore(subscribe, () => keep(read(model)));
}

/** Answers the last value as long as a new one is equal. */
function keeper<T>(isEqual: (one: T, other: T) => boolean): (next: T) => T {
  let last: { value: T } | null = null;
  return next => {
    if (last === null || !isEqual(last.value, next)) {
      last = { value: next };
    }
    return last.value;
  };
}

/** Whether two plain objects, or arrays of such, say the same. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSONExt.deepEqual(one as JSONValue, other as JSONValue);
}
