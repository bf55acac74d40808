import type { IRankRun } from '../model/cells';
import type { ILanes, Spans } from '../model/cellContract';
import { trans } from '../model/trans';
import type { Scale } from './scale';

/** What ranks do in a cell that is profiled, as far as it is told apart. */
export const LANES = ['compute', 'communication', 'waiting'] as const;

type Lane = (typeof LANES)[number];

export function nameLane(lane: Lane): string {
  switch (lane) {
    case 'compute':
      return trans.__('compute');
    case 'communication':
      return trans.__('communication');
    case 'waiting':
      return trans.__('waiting for other ranks');
  }
}

/** The lanes of what ran in a stretch of time. */
export function lanesIn(
  runs: readonly IRankRun[],
  [from, to]: readonly [number, number]
): readonly ILanes[] {
  return runs.flatMap(({ lanes, start, end }) =>
    lanes && start < to && (end ?? to) > from ? [lanes] : []
  );
}

/** For how many seconds of a stretch of time ranks did what: `profiled: compute 2.10 s, …`. */
export function sayLanes(
  all: readonly ILanes[],
  [from, to]: readonly [number, number]
): string {
  if (!all.length) {
    return '';
  }
  const [compute, communication, waiting] = LANES.map(lane => {
    const seconds = all.map(lanes => {
      const whole = lengthIn(lanes[lane], -Infinity, Infinity);
      // A server that is older than this page tells no seconds.
      const seconds = lanes.seconds?.[lane] ?? whole;
      return whole ? (seconds * lengthIn(lanes[lane], from, to)) / whole : 0;
    });
    return seconds.reduce((sum, one) => sum + one, 0).toFixed(2);
  });
  return trans.__(
    'profiled: compute %1 s, communication %2 s, waiting for other ranks %3 s',
    compute,
    communication,
    waiting
  );
}

/** For how long spans last that are in a stretch of time. */
function lengthIn(spans: Spans, from: number, to: number): number {
  return spans.reduce(
    (sum, [start, end]) =>
      sum + Math.max(0, Math.min(end, to) - Math.max(start, from)),
    0
  );
}

/**
 * What of each pixel's time is most: the place of a lane in `LANES`; -1 if it is none of them.
 */
export function mostOfPixels(
  all: readonly ILanes[],
  scale: Scale,
  width: number
): Int8Array {
  const shares = LANES.map(lane => {
    const share = new Float32Array(width);
    for (const lanes of all) {
      for (const [start, end] of lanes[lane]) {
        const left = Math.max(0, scale.place(start));
        const right = Math.min(width, scale.place(end));
        for (let x = Math.floor(left); x < right; x++) {
          share[x] += Math.min(right, x + 1) - Math.max(left, x);
        }
      }
    }
    return share;
  });
  return Int8Array.from({ length: width }, (_, x) => {
    const [a, b, c] = shares.map(share => share[x]);
    const most = Math.max(a, b, c);
    const rest = 1 - a - b - c;
    return most > Math.max(0, rest) ? [a, b, c].indexOf(most) : -1;
  });
}
