import { deadRanks, hasRanks } from './contract';
import type { IPool } from './contract';

/**
 * Where a pool is between its GPUs and the host's memory: `waiting` for the GPUs that it had, `resuming` when it
 * has them again.
 */
export type ParkStage = 'parking' | 'parked' | 'waiting' | 'resuming';

/** Null for a pool that is on its GPUs, or has no ranks. */
export function parkStage(pool: IPool): ParkStage | null {
  if (!hasRanks(pool)) {
    return null;
  }
  const { parking, state } = pool;
  if (parking && !parking.failure) {
    return !parking.resume
      ? 'parking'
      : state === 'SUSPENDED'
        ? 'waiting'
        : 'resuming';
  }
  return isParked(pool) ? 'parked' : null;
}

/** Whether the ranks have nothing on their GPUs, be these leased to others or, in between, still to the pool. */
export function isParked(pool: IPool): boolean {
  return hasRanks(pool) && Boolean(pool.parked);
}

/** Whether the server would begin to park a pool, as far as its record tells. */
export function canPark(pool: IPool): boolean {
  const gpus = pool.ranks.flatMap(({ gpu }) => gpu ?? []);
  return (
    canResize(pool) &&
    typeof pool.park_after === 'number' &&
    gpus.length > 0 &&
    pool.leases !== 'shared' &&
    // The driver parks nothing on MIG instances.
    gpus.every(({ label }) => !label.includes(':')) &&
    !deadRanks(pool).length &&
    (!pool.resizing || pool.resizing.failure !== null)
  );
}

/** Whether a pool may get another size: not while it is parked, or on its way there or back. */
export function canResize(pool: IPool): boolean {
  const nodes = new Set(pool.ranks.map(({ node }) => node ?? ''));
  return (
    pool.state === 'RUNNING' && parkStage(pool) === null && nodes.size <= 1
  );
}
