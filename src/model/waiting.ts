import { isBusy } from './contract';
import type { IPool, IRank } from './contract';
import type { IUsage, IVerdict } from './gpuContract';
import type { IRankReading } from './reading';
import type { ITelemetry } from './telemetry';

/** Ranks that wait in one collective. */
export interface IWait {
  /** Such as `all_reduce`. */
  call: string;
  ranks: number[];
  /** Null where it is not known, or not the same for all. */
  cell: number | null;
  line: number | null;
  /** How many collectives each of them has begun, this one included. */
  calls: number | null;
  /** Unix seconds: the first of them was seen there. */
  since: number;
}

/** Ranks that are not where the others wait, by what they do instead. */
export interface IAbsence {
  state: 'idle' | 'busy' | 'dead' | 'silent' | 'starting';
  ranks: number[];
}

/** A wait that somebody should look at. */
export interface ILongWait {
  /** The longest first. */
  waits: [IWait, ...IWait[]];
  absences: IAbsence[];
}

/** A wait as the server explains it, and as it is seen from here; one of them is there. */
export interface INotedWait {
  verdict: IVerdict | null;
  wait: ILongWait | null;
}

/** The collective that a rank waits in, and since when; null if it does not wait. */
export function waitOf(
  rank: IRank,
  usage: IUsage | null
): { call: string; since: number } | null {
  // What a rank said of itself may be older than its end, or the cell's.
  return rank.state === 'busy' &&
    usage?.call &&
    !usage.stopped &&
    usage.waiting_since !== null
    ? { call: usage.call, since: usage.waiting_since }
    : null;
}

/** Whether a rank lives, but does not respond; what is told of the process that it replaces does not count. */
export function isSilent(
  { state, pid }: IRank,
  { isSilent, usage }: IRankReading
): boolean {
  const isUp = state === 'idle' || state === 'busy';
  return isUp && isSilent && (usage === null || usage.pid === pid);
}

/** The ranks that do not respond. */
export function silentRanks(pool: IPool, telemetry: ITelemetry): number[] {
  return pool.state === 'RUNNING'
    ? pool.ranks
        .filter(rank => isSilent(rank, telemetry.rank(pool.id, rank.rank)))
        .map(({ rank }) => rank)
    : [];
}

/** What the server says of a wait, unless that has ended meanwhile. */
export function verdictOf(pool: IPool, telemetry: ITelemetry): IVerdict | null {
  const verdict = telemetry.verdict(pool.id);
  const isWait = verdict !== null && verdict.since !== null;
  const goesOn =
    silentRanks(pool, telemetry).length > 0 || (isWait && isBusy(pool));
  return goesOn ? verdict : null;
}

/** Since when the first of the ranks that wait does so (Unix seconds); null if none waits. */
export function waitsSince(pool: IPool, telemetry: ITelemetry): number | null {
  const waits = pool.ranks
    .map(rank => waitOf(rank, telemetry.rank(pool.id, rank.rank).usage))
    .flatMap(wait => (wait ? [wait.since] : []));
  return waits.length ? Math.min(...waits) : null;
}

/**
 * Whether ranks have waited for longer than `limit` seconds in a collective that others have not joined.
 *
 * All ranks in one and the same collective are merely slow: nobody is missing there.
 */
export function findLongWait(
  pool: IPool,
  telemetry: ITelemetry,
  now: number,
  limit: number
): ILongWait | null {
  if (pool.state !== 'RUNNING') {
    return null;
  }
  const waits = new Map<string, IWait>();
  const absences = new Map<IAbsence['state'], IAbsence>();
  const note = (state: IAbsence['state'], rank: number): void => {
    const absence = absences.get(state) ?? { state, ranks: [] };
    absence.ranks.push(rank);
    absences.set(state, absence);
  };
  for (const rank of pool.ranks) {
    const reading = telemetry.rank(pool.id, rank.rank);
    const { usage } = reading;
    const wait = waitOf(rank, usage);
    const hasAnswered = usage !== null && usage.host_pid !== null;
    if (wait) {
      join(waits, wait, rank, usage);
    } else if (isSilent(rank, reading)) {
      note('silent', rank.rank);
    } else if (rank.state !== 'busy' || hasAnswered) {
      // One that was only slow to answer may wait there, too.
      note(rank.state, rank.rank);
    }
  }
  const [longest, ...others] = [...waits.values()].sort(
    (a, b) => a.since - b.since
  );
  const isComplete = absences.size === 0 && others.length === 0;
  if (!longest || isComplete || now - longest.since <= limit) {
    return null;
  }
  return { waits: [longest, ...others], absences: [...absences.values()] };
}

function join(
  waits: Map<string, IWait>,
  { call, since }: { call: string; since: number },
  { rank, cell }: IRank,
  usage: IUsage | null
): void {
  const { line = null, calls = null } = usage ?? {};
  const wait = waits.get(call);
  if (!wait) {
    waits.set(call, { call, ranks: [rank], cell, line, calls, since });
    return;
  }
  wait.ranks.push(rank);
  wait.cell = wait.cell === cell ? cell : null;
  wait.line = wait.line === line ? line : null;
  wait.calls = wait.calls === calls ? calls : null;
  wait.since = Math.min(wait.since, since);
}
