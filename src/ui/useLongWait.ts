import { useEffect, useReducer } from 'react';

import type { IPool } from '../model/contract';
import { serverTime } from '../model/serverTime';
import type { IPoolsModel } from '../model/tokens';
import { findLongWait, verdictOf, waitsSince } from '../model/waiting';
import type { INotedWait } from '../model/waiting';
import { isSame, useModel } from './useModel';

/** Milliseconds: a wait that has lasted for the limit is not longer than it yet. */
const MARGIN = 50;

/** Whether ranks of a pool wait too long; drawn again only when there is something else to say. */
export function useLongWait(
  pool: IPool,
  model: IPoolsModel
): INotedWait | null {
  const { telemetry } = model;
  const limit = useModel(model, ({ waitLimit }) => waitLimit);
  const isStale = useModel(
    model,
    ({ connection }) => connection.state === 'stale'
  );
  const found = useModel(
    telemetry,
    (telemetry): INotedWait | null => {
      const now = serverTime();
      const wait = findLongWait(pool, telemetry, now, limit);
      const verdict = verdictOf(pool, telemetry);
      // Nobody may be waiting for a process that is stopped, but it does not go on by itself either.
      const isLong =
        wait !== null ||
        (verdict !== null && now - (verdict.since ?? 0) > limit);
      return !isStale && isLong ? { verdict, wait } : null;
    },
    isSame
  );
  // While ranks wait the server may have nothing new to say, so we look when the limit is over.
  const since = useModel(
    telemetry,
    telemetry =>
      waitsSince(pool, telemetry) ?? verdictOf(pool, telemetry)?.since ?? null
  );
  const [, look] = useReducer((looks: number) => looks + 1, 0);
  useEffect(() => {
    const left = 1000 * ((since ?? 0) + limit - serverTime());
    if (left > 0) {
      const timer = setTimeout(look, left + MARGIN);
      return () => clearTimeout(timer);
    }
  }, [since, limit]);
  return found;
}
