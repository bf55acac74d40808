import React from 'react';

import { labelOf } from '../../model/cards';
import type { IGpuUsage } from '../../model/detailsContract';
import type { IGpu } from '../../model/gpuContract';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { useNow } from '../../ui/clock';
import { sayLoad } from '../../words/detailsWords';
import { formatBytes, formatMoment, joinFacts } from '../../words/format';
import type { DetailsProps } from './props';

const [WIDTH, HEIGHT] = [400, 32];
/** After so many times the usual step, the curve has a gap. */
const GAP = 4;

/** The load and memory of each GPU during the last attempt. */
export function Curves(props: DetailsProps): JSX.Element | null {
  const { details, model, clock } = props;
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const now = useNow(clock);
  const attempt = details.attempts.at(-1);
  const seen = Object.entries(attempt?.usage ?? {}).filter(
    ([, { curve }]) => curve.length > 0
  );
  if (!attempt || !seen.length) {
    return null;
  }
  const start = attempt.started ?? seen[0][1].curve[0][0];
  const end = Math.max(attempt.ended ?? now, start + 1);
  return (
    <section
      className="jp-dist-Curves"
      aria-label={trans.__('GPU load and memory')}
    >
      {seen.map(([uuid, usage]) => (
        <GpuCurves
          key={uuid}
          {...{ usage, start, end }}
          gpu={gpus.find(gpu => gpu.uuid === uuid)}
        />
      ))}
      <p className="jp-dist-Curves-times jp-dist-quiet">
        <span>{formatMoment(start, now)}</span>
        <span>
          {attempt.ended === null
            ? trans.__('now')
            : formatMoment(attempt.ended, now)}
        </span>
      </p>
    </section>
  );
}

interface IGpuCurvesProps {
  usage: IGpuUsage;
  gpu: IGpu | undefined;
  start: number;
  end: number;
}

function GpuCurves(props: IGpuCurvesProps): JSX.Element {
  const { usage, gpu } = props;
  const { curve, memory_peak } = usage;
  const full = Math.max(gpu?.memory_total ?? 0, memory_peak, 1);
  const name = gpu ? trans.__('GPU %1', labelOf(gpu)) : trans.__('GPU');
  const load = sayLoad([usage]);
  const memory =
    (memory_peak > 0 || gpu?.memory_total !== 0) &&
    trans.__('memory up to %1', formatBytes(memory_peak));
  return (
    <div className="jp-dist-Curve">
      <strong>{name}</strong>
      <span className="jp-dist-Curve-words">
        {load && <span className="jp-mod-load">{load}</span>}
        {memory && <span className="jp-mod-memory">{memory}</span>}
      </span>
      <svg
        role="img"
        aria-label={joinFacts([name, load, memory])}
        viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`}
        preserveAspectRatio="none"
      >
        <path
          className="jp-mod-memory"
          d={draw(props, curve, ([, , bytes]) => bytes / full)}
        />
        <path
          className="jp-mod-load"
          d={draw(props, curve, ([, load]) => load && load / 100)}
        />
      </svg>
    </div>
  );
}

/** A line through the points, from 0 to 1, with gaps where nothing is known. */
function draw<T extends readonly [number, ...unknown[]]>(
  { start, end }: { start: number; end: number },
  curve: readonly T[],
  read: (point: T) => number | null
): string {
  const usual = (curve[curve.length - 1][0] - curve[0][0]) / curve.length;
  let last: number | null = null;
  return curve
    .map(point => {
      const [at, value] = [point[0], read(point)];
      if (value === null) {
        last = null;
        return '';
      }
      const x = (WIDTH * (at - start)) / (end - start);
      const y = HEIGHT * (1 - Math.min(1, value));
      const isJoined = last !== null && at - last <= GAP * usual + 1;
      last = at;
      const place = `${x.toFixed(1)} ${y.toFixed(1)}`;
      // A point alone is drawn by its round ends.
      return isJoined ? `L${place}` : `M${place}h0`;
    })
    .join('');
}
