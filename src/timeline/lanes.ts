import type { IRankRun } from '../model/cells';
import type { ILanes, Spans } from '../model/cellContract';
import { trans } from '../model/trans';
import { element } from '../ui/element';
import type { TimelineModel } from './model';
import type { Scale } from './scale';

const LANES = ['compute', 'communication', 'waiting'] as const;

/** The colors of profiled cells; hidden while none is in sight. */
export class Legend {
  constructor(
    parent: HTMLElement,
    private readonly _model: TimelineModel
  ) {
    this._node = element(parent, 'jp-dist-Timeline-legend');
    element(this._node, '', 'span').textContent = trans.__(
      'Profiled cells, most of the time:'
    );
    const names = {
      compute: trans.__('compute'),
      communication: trans.__('communication'),
      waiting: trans.__('waiting for other ranks')
    };
    for (const lane of LANES) {
      const entry = element(this._node, 'jp-dist-Timeline-lane', 'span');
      entry.dataset.lane = lane;
      entry.append(names[lane]);
    }
  }

  update(): void {
    const { gpus, cells, view, choice } = this._model;
    this._node.hidden =
      choice.isOverlay ||
      !gpus.some(({ uuid }) => lanesIn(cells.on(uuid), view).length);
  }

  private readonly _node: HTMLElement;
}

/** The lanes of the cells that ran in a stretch of time. */
export function lanesIn(
  runs: readonly IRankRun[],
  [from, to]: readonly [number, number]
): readonly ILanes[] {
  return runs.flatMap(({ lanes, start, end }) =>
    lanes && start < to && (end ?? to) > from ? [lanes] : []
  );
}

/** What ranks did in a stretch of time: `profiled: compute 2.10 s, …`. */
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
      // An older server sends no seconds.
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

/** How many seconds of a stretch of time the spans cover. */
function lengthIn(spans: Spans, from: number, to: number): number {
  return spans.reduce(
    (sum, [start, end]) =>
      sum + Math.max(0, Math.min(end, to) - Math.max(start, from)),
    0
  );
}

/** The index in `LANES` that takes most of each pixel's time, or -1. */
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
