import type { ICellHistory, ICellRun } from '../model/cells';
import type { IPool } from '../model/contract';
import type { IGpu } from '../model/gpuContract';
import { isInUse } from '../model/gpuUse';
import type { ITelemetry } from '../model/telemetry';
import type { ChartMetric } from './metrics';

/** Which GPUs are shown: those in use, all, or those of the notebook's own pool. */
export const SELECTIONS = ['used', 'all', 'own'] as const;
export type Selection = (typeof SELECTIONS)[number];

export interface IChoice {
  readonly metric: ChartMetric;
  readonly minutes: number;
  readonly selection: Selection;
  /** Whether all curves are in one chart. */
  readonly isOverlay: boolean;
  /** Whether to leave out the time before the first value. */
  readonly isFitted: boolean;
}

/** The GPUs that are shown. If that would be none, there is nothing to choose from, and all are. */
export function selectGpus(
  selection: Selection,
  gpus: readonly IGpu[],
  own: IPool | null,
  telemetry: ITelemetry
): readonly IGpu[] {
  const isShown = ({ uuid }: IGpu): boolean => {
    if (selection === 'own') {
      return own?.ranks.some(({ gpu }) => gpu?.uuid === uuid) ?? false;
    }
    return isUsed(uuid, telemetry);
  };
  const shown = selection === 'all' ? gpus : gpus.filter(isShown);
  return shown.length ? shown : gpus;
}

/** The GPUs that are left out where those in use are shown; none where nothing is in use. */
export function freeGpus(
  gpus: readonly IGpu[],
  telemetry: ITelemetry
): readonly IGpu[] {
  const free = gpus.filter(({ uuid }) => !isUsed(uuid, telemetry));
  return free.length < gpus.length ? free : [];
}

function isUsed(uuid: string, telemetry: ITelemetry): boolean {
  return isInUse(telemetry.gpu(uuid)) || telemetry.cells.on(uuid).length > 0;
}

export function selectCells(
  selection: Selection,
  own: IPool | null,
  { all }: ICellHistory
): readonly ICellRun[] {
  return selection === 'own' && own
    ? all.filter(({ pool }) => pool === own.id)
    : all;
}
