import { serverTime } from '../model/serverTime';
import { bornAt, spanOf } from '../model/span';
import { useModel } from '../ui/useModel';
import type { IPanelServices } from './services';

/** Seconds that the small curves reach back; all of the panel are as long. */
export function useSpan({ model, current }: IPanelServices): number {
  const born = useModel(current, ({ pool }) => bornAt(pool));
  return useModel(model.telemetry, () => spanOf(born, serverTime()));
}
