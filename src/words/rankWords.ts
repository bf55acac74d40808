import type { IPool, IRank } from '../model/contract';
import { isParked } from '../model/parking';
import type { IRankReading } from '../model/reading';
import { trans } from '../model/trans';
import { isSilent, waitOf } from '../model/waiting';
import { formatDuration, joinFacts } from './format';

/** How a rank does, as `moods.tsx` draws it; `missing` is one that others wait for, or that differs from them. */
export type Mood =
  | 'dead'
  | 'silent'
  | 'missing'
  | 'waits'
  | 'busy'
  | 'idle'
  | 'starting'
  | 'parked'
  | 'ending';

/** What a pool does, as far as it changes what a rank does; one that is gone is no bad news in a pool that ends. */
export type Phase = 'running' | 'parked' | 'ending';

export function phaseOf(pool: IPool): Phase {
  return isParked(pool)
    ? 'parked'
    : pool.state === 'RUNNING'
      ? 'running'
      : 'ending';
}

/** `mark`: what is told of a rank that others wait for. */
export function moodOf(
  rank: IRank,
  reading: IRankReading,
  phase: Phase,
  mark: string | null = null
): Mood {
  if (phase === 'ending') {
    return 'ending';
  }
  if (phase === 'parked' && rank.state !== 'dead') {
    return 'parked';
  }
  if (isSilent(rank, reading)) {
    return 'silent';
  }
  if (mark !== null && rank.state !== 'dead') {
    return 'missing';
  }
  return waitOf(rank, reading.usage) ? 'waits' : rank.state;
}

/** `Rank 2`. */
export function nameOf({ rank }: IRank): string {
  return trans.__('Rank %1', rank);
}

/** Where it sits: `GPU 4`, `CPU`, `cuda:1 on node-2`, where we do not know the GPU. */
export function placeOf({ gpu, device, node }: IRank): string {
  const onCpu = device === 'cpu' ? trans.__('CPU') : device;
  const place = gpu ? trans.__('GPU %1', gpu.label) : onCpu;
  return node ? trans.__('%1 on %2', place, node) : place;
}

/**
 * What a rank does: `busy [7] · 12 s`, `waits in all_reduce · 9 s`, `idle 3 min`.
 *
 * Without `now`, in words that stay true while it does the same.
 */
export function sayState(
  rank: IRank,
  reading: IRankReading,
  phase: Phase,
  now: number | null,
  mark: string | null = null
): string {
  const { cell, exit, since } = rank;
  const wait = waitOf(rank, reading.usage);
  switch (moodOf(rank, reading, phase, mark)) {
    case 'ending':
      return rank.state === 'dead' ? trans.__('stopped') : trans.__('stopping');
    case 'parked':
      return trans.__('parked');
    case 'starting':
      return trans.__('starting');
    case 'silent':
      return trans.__('does not respond');
    case 'dead':
      return exit ? trans.__('dead: %1', exit) : trans.__('dead');
    case 'missing':
      return joinFacts([mark, sayState(rank, reading, phase, now)]);
    case 'waits':
      return joinFacts([
        trans.__('waits in %1', wait?.call),
        now !== null && wait && formatDuration(now - wait.since)
      ]);
    case 'busy':
      if (reading.usage?.stopped) {
        const { file, line } = reading.usage.stopped;
        return joinFacts([
          trans.__('stopped'),
          trans.__('%1 line %2', file, line)
        ]);
      }
      return joinFacts([
        cell === null ? trans.__('busy') : trans.__('busy [%1]', cell),
        now !== null && formatDuration(now - since)
      ]);
    case 'idle':
      return now === null
        ? trans.__('idle')
        : trans.__('idle %1', formatDuration(now - since));
  }
}

/** Whether the words change as time goes by. */
export function isTimed(mood: Mood): boolean {
  return ['missing', 'waits', 'busy', 'idle'].includes(mood);
}
