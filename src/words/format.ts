import type { TranslationBundle } from '@jupyterlab/translation';

import type { IPool, IRank } from '../model/contract';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** As many rank numbers, or stretches of them, can be read at a glance. */
const MOST_RUNS = 4;

/**
 * How long, in its largest unit: `41 s`, `12 min`, `3 h`.
 */
export function formatDuration(
  seconds: number,
  trans: TranslationBundle
): string {
  const whole = clean(seconds);
  if (whole < MINUTE) {
    return trans.__('%1 s', whole);
  }
  if (whole < HOUR) {
    return trans.__('%1 min', Math.floor(whole / MINUTE));
  }
  return whole < 2 * DAY
    ? trans.__('%1 h', Math.floor(whole / HOUR))
    : trans.__('%1 d', Math.floor(whole / DAY));
}

/**
 * How long, to the second below an hour: `3 min 51 s`.
 */
export function formatStopwatch(
  seconds: number,
  trans: TranslationBundle
): string {
  const whole = clean(seconds);
  if (whole < MINUTE) {
    return trans.__('%1 s', whole);
  }
  if (whole < HOUR) {
    return trans.__('%1 min %2 s', Math.floor(whole / MINUTE), whole % MINUTE);
  }
  return trans.__(
    '%1 h %2 min',
    Math.floor(whole / HOUR),
    Math.floor((whole % HOUR) / MINUTE)
  );
}

/** The clocks of server and browser may differ by a little. */
function clean(seconds: number): number {
  return Math.max(0, Math.floor(seconds));
}

/**
 * Memory as GPU makers count it: `80 GB`.
 */
export function formatMemory(bytes: number, trans: TranslationBundle): string {
  return trans.__('%1 GB', Math.round(bytes / 2 ** 30));
}

/**
 * Memory that is used, in GB without its unit: `34.1`.
 */
export function formatUsed(bytes: number): string {
  const size = bytes / 2 ** 30;
  return size.toFixed(size < 100 ? 1 : 0);
}

/**
 * Memory that may be little: `31.2 GB`, `512 MB`.
 */
export function formatBytes(bytes: number, trans: TranslationBundle): string {
  return bytes < 2 ** 30
    ? trans.__('%1 MB', Math.round(bytes / 2 ** 20))
    : trans.__('%1 GB', formatUsed(bytes));
}

/**
 * How fast a link is in use, as link makers count it, with the two digits that are known of it:
 * `120 MB/s`, `1.2 GB/s`, `12 GB/s`.
 */
export function formatRate(rate: number, trans: TranslationBundle): string {
  return rate < 1e9
    ? trans.__('%1 MB/s', Math.round(rate / 1e6))
    : trans.__('%1 GB/s', (rate / 1e9).toFixed(rate < 1e10 ? 1 : 0));
}

/**
 * The time of day: `14:03:12`.
 */
export function formatTime(milliseconds: number): string {
  return new Date(milliseconds).toLocaleTimeString([], { hourCycle: 'h23' });
}

/**
 * Rank numbers in short: `0–2, 5`.
 */
export function formatRanks(ranks: number[]): string {
  const runs: number[][] = [];
  for (const rank of [...ranks].sort((a, b) => a - b)) {
    const run = runs[runs.length - 1];
    if (run && rank === run[run.length - 1] + 1) {
      run.push(rank);
    } else {
      runs.push([rank]);
    }
  }
  return runs
    .map(run =>
      run.length === 1 ? `${run[0]}` : `${run[0]}–${run[run.length - 1]}`
    )
    .join(', ');
}

/**
 * The backend's names without its devices: `gloo + nccl`.
 */
export function formatBackend(backend: string): string {
  return backend
    .split(',')
    .map(part => part.slice(part.indexOf(':') + 1))
    .join(' + ');
}

/**
 * What a running pool does, in a phrase: `cell [7] on all ranks, 41 s`.
 */
export function formatActivity(
  pool: IPool,
  now: number,
  trans: TranslationBundle
): string {
  const [busy, idle, dead] = (['busy', 'idle', 'dead'] as const).map(state =>
    pool.ranks.filter(rank => rank.state === state)
  );
  const others = [
    ...(dead.length
      ? [
          trans._n(
            '%2 is dead',
            '%2 are dead',
            dead.length,
            nameRanks(dead, pool, trans)
          )
        ]
      : [])
  ];
  if (busy.length === 0) {
    const since = Math.max(...pool.ranks.map(rank => rank.since));
    return (
      others[0] ?? trans.__('idle · %1', formatDuration(now - since, trans))
    );
  }
  if (idle.length > 0) {
    others.unshift(
      trans._n(
        '%2 is idle',
        '%2 are idle',
        idle.length,
        nameRanks(idle, pool, trans)
      )
    );
  }
  const since = Math.min(...busy.map(rank => rank.since));
  return [
    ...formatCells(busy, pool, trans),
    ...(others.length ? others : [formatStopwatch(now - since, trans)])
  ].join(', ');
}

/** Which cell is on which ranks: `cell [7] on ranks 0–2`. */
function formatCells(
  busy: IRank[],
  pool: IPool,
  trans: TranslationBundle
): string[] {
  return [...new Set(busy.map(({ cell }) => cell))].map(cell => {
    const names = nameRanks(
      busy.filter(rank => rank.cell === cell),
      pool,
      trans
    );
    return cell === null
      ? trans.__('%1 busy', names)
      : trans.__('cell [%1] on %2', cell, names);
  });
}

/**
 * Some ranks of a pool: `rank 2`, `ranks 0–2`, `all ranks`.
 */
export function nameRanks(
  ranks: IRank[],
  pool: IPool,
  trans: TranslationBundle
): string {
  return ranks.length === pool.world_size && ranks.length > 1
    ? trans.__('all ranks')
    : sayRanks(
        ranks.map(({ rank }) => rank),
        trans
      );
}

/**
 * Ranks by their numbers, or how many where that would be a long list: `ranks 0–2`, `37 ranks`.
 */
export function sayRanks(ranks: number[], trans: TranslationBundle): string {
  const numbers = formatRanks(ranks);
  return numbers.split(', ').length > MOST_RUNS
    ? trans.__('%1 ranks', ranks.length)
    : trans._n('rank %2', 'ranks %2', ranks.length, numbers);
}
