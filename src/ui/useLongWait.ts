import { useEffect, useMemo, useReducer } from 'react';

import type { IPool } from '../model/contract';
import { serverTime } from '../model/serverTime';
import type { IPoolsModel } from '../model/tokens';
import { findLongWait, waitsSince } from '../model/waiting';
import type { ILongWait } from '../model/waiting';
import { useTelemetry } from './useTelemetry';

/** Milliseconds: a wait that has lasted for the limit is not longer than it yet. */
const MARGIN = 50;

/**
 * Whether ranks of a pool wait too long; drawn again only when there is something else to say.
 */
export function useLongWait(pool: IPool, model: IPoolsModel): ILongWait | null {
  const { telemetry, waitLimit } = model;
  const isStale = model.connection.state === 'stale';
  const found = useTelemetry(telemetry, telemetry =>
    isStale
      ? 'null'
      : JSON.stringify(findLongWait(pool, telemetry, serverTime(), waitLimit))
  );
  // While ranks wait the server may have nothing new to say, so we look when the limit is over.
  const since = useTelemetry(telemetry, telemetry =>
    waitsSince(pool, telemetry)
  );
  const [, look] = useReducer((looks: number) => looks + 1, 0);
  useEffect(() => {
    const left = 1000 * ((since ?? 0) + waitLimit - serverTime());
    if (left > 0) {
      const timer = setTimeout(look, left + MARGIN);
      return () => clearTimeout(timer);
    }
  }, [since, waitLimit]);
  return useMemo(() => JSON.parse(found) as ILongWait | null, [found]);
}
