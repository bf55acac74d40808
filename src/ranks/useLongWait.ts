import { useMemo } from 'react';

import type { IPool } from '../model/contract';
import { findLongWait } from '../model/waiting';
import type { ILongWait } from '../model/waiting';
import { useTelemetry } from '../panel/useTelemetry';
import type { IPoolsModel } from '../tokens';

/**
 * Whether ranks of a pool wait too long; drawn again only when there is something else to say.
 */
export function useLongWait(pool: IPool, model: IPoolsModel): ILongWait | null {
  const isStale = model.connection.state === 'stale';
  const found = useTelemetry(model.telemetry, telemetry =>
    isStale
      ? 'null'
      : JSON.stringify(
          findLongWait(pool, telemetry, Date.now() / 1000, model.waitLimit)
        )
  );
  return useMemo(() => JSON.parse(found) as ILongWait | null, [found]);
}
