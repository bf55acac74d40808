import type { IPool } from './contract';
import type { IGpu, IProcess, Who } from './gpuContract';
import type { IReading } from './reading';
import type { ITelemetry } from './telemetry';

/** A rank that sits on a GPU. */
export interface ISeat {
  pool: IPool;
  rank: number;
}

/** A part of a GPU's memory, by who holds it; `rest` is what nobody accounts for. */
export type MemoryOwner =
  | { kind: 'rank'; pool: string; rank: number }
  | { kind: 'kernel' | 'mine' | 'other' | 'rest' };

export interface ISegment {
  owner: MemoryOwner;
  bytes: number;
}

/** The ranks on a GPU, those of `own` first; parked ones have nothing there. */
export function seatsOn(
  uuid: string,
  pools: Iterable<IPool>,
  own: IPool | null
): ISeat[] {
  return [...pools]
    .filter(({ ended, state }) => ended === null && state !== 'SUSPENDED')
    .sort((a, b) => Number(b === own) - Number(a === own))
    .flatMap(pool =>
      pool.ranks
        .filter(({ gpu }) => gpu?.uuid === uuid)
        .map(({ rank }) => ({ pool, rank }))
    );
}

export function isSameSeats(one: ISeat[], other: ISeat[]): boolean {
  return (
    one.length === other.length &&
    one.every(
      ({ pool, rank }, index) =>
        pool.id === other[index].pool.id && rank === other[index].rank
    )
  );
}

/**
 * Who holds how much of a GPU's memory: ranks first, and never more in all than is used.
 *
 * Where the driver does not know a rank's process, as in a container, what torch holds counts.
 */
export function segments(
  reading: IReading,
  seats: ISeat[],
  telemetry: ITelemetry
): ISegment[] {
  const processes = reading.processes ?? [];
  const sum = (has: (who: Who) => boolean) =>
    processes
      .filter(({ who }) => has(who))
      .reduce((bytes, { memory }) => bytes + (memory ?? 0), 0);
  const ranks = seats.map(({ pool, rank }): ISegment => {
    const usage = telemetry.rank(pool.id, rank).usage;
    const known = sum(
      who => who.kind === 'rank' && who.pool === pool.id && who.rank === rank
    );
    return {
      owner: { kind: 'rank', pool: pool.id, rank },
      bytes: known || (usage?.reserved ?? 0)
    };
  });
  const others = (['kernel', 'mine', 'other'] as const).map(
    (kind): ISegment => ({
      owner: { kind },
      bytes: sum(who => who.kind === kind)
    })
  );
  let left = reading.values.memory_used ?? 0;
  const found = [...ranks, ...others].map(({ owner, bytes }) => {
    const part = Math.min(bytes, left);
    left -= part;
    return { owner, bytes: part };
  });
  return [...found, { owner: { kind: 'rest' } as const, bytes: left }].filter(
    ({ bytes }) => bytes > 0
  );
}

/** Whether somebody has a GPU, or works on it. */
export function isInUse({ lease, processes, use }: IReading): boolean {
  return lease !== null || use !== null || Boolean(processes?.length);
}

/** How many GPUs can be had: nobody has or works on them, and none is drained or reserved; null while that is not known. */
export function countFree(
  gpus: readonly IGpu[],
  telemetry: ITelemetry
): number | null {
  const isFree = ({ uuid }: IGpu) => {
    const reading = telemetry.gpu(uuid);
    return !isInUse(reading) && !reading.closed?.now;
  };
  return telemetry.isCurrent ? gpus.filter(isFree).length : null;
}

/** The processes for which the server refuses to start ranks of a kernel on a GPU. */
export function obstacles(
  reading: IReading,
  kernelId: string | null
): IProcess[] {
  return strangers(reading).filter(
    ({ pid, who }) =>
      reading.use?.pids.includes(pid) &&
      !(who.kind === 'kernel' && who.kernel_id === kernelId)
  );
}

/** The processes that are no ranks, the largest first. */
export function strangers(reading: IReading): IProcess[] {
  return (reading.processes ?? [])
    .filter(({ who }) => who.kind !== 'rank')
    .sort((a, b) => (b.memory ?? 0) - (a.memory ?? 0));
}
