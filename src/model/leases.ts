import { labelOf } from './cards';
import type { IPool } from './contract';
import type { IGpu, ILease } from './gpuContract';
import type { ITelemetry } from './telemetry';

/** What somebody has leased who is not on this server. */
export interface IForeignLease {
  /** Null where it is not known who that is. */
  user: string | null;
  pid: number | null;
  /** Unix seconds. */
  since: number | null;
  /** The notebook's path, empty when it is not known. */
  notebook: string;
  shared: boolean;
  /** Labels of the GPUs. */
  gpus: string[];
}

/**
 * The leases that no pool of this server has, each leaseholder with all its GPUs; those of jobs, which have
 * these GPUs, are shown in the queue.
 */
export function foreignLeases(
  gpus: readonly IGpu[],
  pools: ReadonlyMap<string, IPool>,
  telemetry: ITelemetry,
  ofJobs: readonly string[] = []
): IForeignLease[] {
  const found = new Map<string, IForeignLease>();
  for (const gpu of gpus) {
    const { lease } = telemetry.gpu(gpu.uuid);
    for (const one of lease ? [lease, ...(lease.others ?? [])] : []) {
      const isJob = one.pool?.startsWith('job-') && ofJobs.includes(gpu.uuid);
      if (!isJob && !pools.has(one.pool ?? '')) {
        keep(one, labelOf(gpu));
      }
    }
  }
  return [...found.values()];

  function keep(lease: ILease, label: string): void {
    const { user, pid = null, pool, since = null, notebook, shared } = lease;
    const key = `${user} ${pool ?? pid}`;
    const known = found.get(key);
    if (known) {
      known.gpus.push(label);
    } else {
      found.set(key, {
        ...{ user, pid, since, shared },
        notebook: notebook ?? '',
        gpus: [label]
      });
    }
  }
}
