import type { IPool } from '../model/contract';
import type { IGpu } from '../model/gpuContract';
import type { ITelemetry } from '../model/telemetry';
import { trans } from '../model/trans';
import { formatBytes } from './format';

/**
 * How busy a pool is, as far as it is known: `82 %`, `31/80 GiB`.
 *
 * The means over its GPUs, so that the memory can be held against the size of a card; on the CPU the
 * mean over its ranks (100 % is one core), and the memory of them all.
 */
export function loadOf(
  pool: IPool,
  gpus: readonly IGpu[],
  telemetry: ITelemetry
): string[] {
  const uuids = gpusOf(pool);
  if (uuids.length === 0) {
    return cpuLoad(pool, telemetry);
  }
  const values = uuids.map(uuid => telemetry.gpu(uuid).values);
  const busy = mean(values.map(({ utilization }) => utilization));
  const used = mean(values.map(({ memory_used }) => memory_used));
  const total = mean(
    uuids.map(uuid => gpus.find(gpu => gpu.uuid === uuid)?.memory_total)
  );
  return [
    ...(busy === null ? [] : [trans.__('%1 %', Math.round(busy))]),
    ...(used === null || total === null
      ? []
      : [trans.__('%1/%2 GiB', gigabytes(used), gigabytes(total))])
  ];
}

/** The GPUs that the ranks compute on; with a torch that has no CUDA there are none. */
export function gpusOf(pool: IPool): string[] {
  const uuids = pool.ranks.flatMap(({ gpu, device }) =>
    gpu && device !== 'cpu' ? [gpu.uuid] : []
  );
  return [...new Set(uuids)];
}

function cpuLoad(pool: IPool, telemetry: ITelemetry): string[] {
  const usages = pool.ranks.map(
    ({ rank }) => telemetry.rank(pool.id, rank).usage
  );
  const cpu = mean(usages.map(usage => usage?.cpu));
  const memory = known(usages.map(usage => usage?.memory));
  return [
    ...(cpu === null ? [] : [trans.__('CPU %1 %', Math.round(cpu))]),
    ...(memory.length
      ? [formatBytes(memory.reduce((sum, bytes) => sum + bytes, 0))]
      : [])
  ];
}

/** What small curves show: `Utilization, last 2 min`. */
export function saySpan(of: 'gpu' | 'cpu', seconds: number): string {
  const minutes = Math.round(seconds / 60);
  return of === 'gpu'
    ? trans.__('Utilization, last %1 min', minutes)
    : trans.__('CPU use, last %1 min', minutes);
}

function known(values: (number | null | undefined)[]): number[] {
  return values.filter(value => value !== null && value !== undefined);
}

/** Of those that are known; null if none is. */
function mean(values: (number | null | undefined)[]): number | null {
  const numbers = known(values);
  return numbers.length
    ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length
    : null;
}

function gigabytes(bytes: number): number {
  return Math.round(bytes / 2 ** 30);
}
