import { serverTime } from '../model/serverTime';
import { spanOf } from '../model/span';
import { useModel } from '../ui/useModel';
import type { IPanelServices } from './services';

/** Seconds that the small curves reach back; all of the panel are as long. */
export function useSpan({ model, current }: IPanelServices): number {
  const pool = useModel(current, ({ pool }) => pool);
  return useModel(model.telemetry, () => spanOf(pool, serverTime()));
}
