import type { ITelemetry } from '../model/telemetry';
import { useModel } from './useModel';

/**
 * A part of the telemetry; the component is drawn again only when that part is another one.
 */
export function useTelemetry<T>(
  telemetry: ITelemetry,
  read: (telemetry: ITelemetry) => T
): T {
  return useModel(telemetry, read);
}
