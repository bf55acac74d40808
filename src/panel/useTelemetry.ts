import { useCallback, useSyncExternalStore } from 'react';

import type { ITelemetry } from '../model/telemetry';

/**
 * A part of the telemetry; the component is drawn again only when that part is another one.
 *
 * `read` must answer the same object as long as nothing has changed.
 */
export function useTelemetry<T>(
  telemetry: ITelemetry,
  read: (telemetry: ITelemetry) => T
): T {
  const subscribe = useCallback(
    (listener: () => void) => {
      const slot = () => listener();
      telemetry.changed.connect(slot);
      return () => {
        telemetry.changed.disconnect(slot);
      };
    },
    [telemetry]
  );
  return useSyncExternalStore(subscribe, () => read(telemetry));
}
