import { trans } from '../model/trans';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** As many rank numbers, or runs of them, can be read at a glance. */
const MOST_RUNS = 4;

/** How long, in its largest unit: `41 s`, `12 min`, `3 h`. */
export function formatDuration(seconds: number): string {
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

/** How long, to the second below an hour: `3 min 51 s`. */
export function formatStopwatch(seconds: number): string {
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

/** Memory: `80 GiB`. */
export function formatMemory(bytes: number): string {
  return trans.__('%1 GiB', Math.round(bytes / 2 ** 30));
}

/** Memory that is used, in GiB without its unit: `34.1`. */
export function formatUsed(bytes: number): string {
  const size = bytes / 2 ** 30;
  return size.toFixed(size < 100 ? 1 : 0);
}

/** Memory of any size: `12 B`, `3.4 KiB`, `512 MiB`, `31.2 GiB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 2 ** 10) {
    return trans.__('%1 B', Math.round(bytes));
  }
  const digits = (size: number) => size.toFixed(size < 10 ? 1 : 0);
  if (bytes < 2 ** 20) {
    return trans.__('%1 KiB', digits(bytes / 2 ** 10));
  }
  return bytes < 2 ** 30
    ? trans.__('%1 MiB', digits(bytes / 2 ** 20))
    : trans.__('%1 GiB', formatUsed(bytes));
}

/**
 * How fast a link is in use, as link makers count it, with the two digits that are known of it:
 * `120 MB/s`, `1.2 GB/s`, `12 GB/s`.
 */
export function formatRate(rate: number): string {
  return rate < 1e9
    ? trans.__('%1 MB/s', Math.round(rate / 1e6))
    : trans.__('%1 GB/s', (rate / 1e9).toFixed(rate < 1e10 ? 1 : 0));
}

/** The time of day: `14:03:12`. */
export function formatTime(milliseconds: number): string {
  return new Date(milliseconds).toLocaleTimeString([], { hourCycle: 'h23' });
}

/** Rank numbers in short: `0–2, 5`. */
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

/** The backend's names without its devices: `gloo + nccl`. */
export function formatBackend(backend: string): string {
  return backend
    .split(',')
    .map(part => part.slice(part.indexOf(':') + 1))
    .join(' + ');
}

/** The same where there is little room: `0, 2, 4, 6, … (37)` of a long list. */
export function listRanks(ranks: number[]): string {
  const runs = formatRanks(ranks).split(', ');
  return runs.length > MOST_RUNS
    ? `${runs.slice(0, MOST_RUNS).join(', ')}, … (${ranks.length})`
    : runs.join(', ');
}

/** Facts that stand beside each other: `4 ranks · gloo · 12 min`; what is empty is left out. */
export function joinFacts(
  facts: readonly (string | false | null | undefined)[]
): string {
  return facts.filter(Boolean).join(' · ');
}

/** Whole sentences, one after the other. */
export function joinSentences(sentences: readonly string[]): string {
  return sentences.filter(Boolean).join(' ');
}

/** `pid 812`: a name, and the same in all languages. */
export function namePid(pid: number | string): string {
  return `pid ${pid}`;
}

const TIME = {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23'
} as const;
// Made once: the timeline asks with each frame.
const NEAR = new Intl.DateTimeFormat([], TIME);
const FAR = new Intl.DateTimeFormat([], {
  ...TIME,
  day: 'numeric',
  month: 'short'
});

/** `14:20` within a day, where that is clear; else `23 Nov, 14:20`. By default it is now by the browser's clock. */
export function formatMoment(seconds: number, now = Date.now() / 1000): string {
  const isNear = Math.abs(seconds - now) < DAY;
  return (isNear ? NEAR : FAR).format(1000 * seconds);
}
