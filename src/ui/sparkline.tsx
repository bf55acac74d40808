import React, { memo } from 'react';

import { serverTime } from '../model/serverTime';
import { bornAt, lastPart, spanOf } from '../model/span';
import type { ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { colourOf } from './meters';
import { useModel } from './useModel';

const HEIGHT = 100;
/** Room for the thickness of the line at 0 and at 100 %. */
const EDGE = 3;

/** How many seconds all sparklines of the panel show. */
export function useSpan(services: {
  model: IPoolsModel;
  current: ICurrentNotebook;
}): number {
  const { model, current } = services;
  const born = useModel(current, ({ pool }) => bornAt(pool));
  return useModel(model.telemetry, () => spanOf(born, serverTime()));
}

interface ISparklineProps {
  label: string;
  /** Null where nothing is known. */
  curve: readonly (number | null)[];
  /** Seconds of it that are shown, up to now. */
  span: number;
  /** The rank whose colour it has. */
  rank?: number;
}

/** A small curve of percents, with gaps; drawn again only when it is another one. */
export const Sparkline = memo(function Sparkline(
  props: ISparklineProps
): JSX.Element {
  const { label, span, rank } = props;
  const curve = lastPart(props.curve, span);
  const top = Math.max(100, ...curve.map(value => value ?? 0));
  const runs = split(curve).map(({ start, values }) => {
    const heights = values.map(value =>
      (HEIGHT * (1 - value / top)).toFixed(1)
    );
    // A value stands in the middle of its column; the run's ends reach to the edges of theirs.
    const line = [
      `${start},${heights[0]}`,
      ...heights.map((height, index) => `${start + index + 0.5},${height}`),
      `${start + values.length},${heights[heights.length - 1]}`
    ].join(' ');
    return { start, end: start + values.length, line };
  });
  return (
    <svg
      className="jp-dist-Sparkline"
      role="img"
      aria-label={label}
      viewBox={`0 ${-EDGE} ${curve.length} ${HEIGHT + 2 * EDGE}`}
      preserveAspectRatio="none"
      data-colour={rank === undefined ? undefined : colourOf(rank)}
    >
      {runs.map(({ start, end, line }) => (
        <g key={start}>
          <polygon points={`${start},${HEIGHT} ${line} ${end},${HEIGHT}`} />
          <polyline points={line} />
        </g>
      ))}
    </svg>
  );
});

interface IRun {
  start: number;
  values: number[];
}

/** The stretches between the gaps. */
function split(curve: readonly (number | null)[]): IRun[] {
  const runs: IRun[] = [];
  curve.forEach((value, index) => {
    if (value === null) {
      return;
    }
    const last = runs.at(-1);
    if (last && last.start + last.values.length === index) {
      last.values.push(value);
    } else {
      runs.push({ start: index, values: [value] });
    }
  });
  return runs;
}
