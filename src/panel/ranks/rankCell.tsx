import React, { memo } from 'react';

import { trans } from '../../model/trans';
import { colourOf } from '../../ui/meters';
import { below, onContextMenu } from '../../ui/menu';
import type { IMenuPlace } from '../../ui/menu';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts, namePid } from '../../words/format';
import { placeOf, moodOf, nameOf, sayState } from '../../words/rankWords';
import type { Mood } from '../../words/rankWords';
import { openRankMenu } from './rankMenu';
import type { IRankProps } from './rankTile';
import { gpuOf, loadOf } from './rankUse';

interface IRankCellProps extends IRankProps {
  /** Whether the keyboard comes to this cell first. */
  isCurrent: boolean;
  choose: (rank: number) => void;
}

/** One rank of many: its number and colour, what it does as a shape, and how busy its device is. */
export const RankCell = memo(function RankCell(
  props: IRankCellProps
): JSX.Element {
  const { poolId, rank, isEnding, telemetry } = props;
  const mood = useModel(telemetry, telemetry =>
    moodOf(rank, telemetry.rank(poolId, rank.rank), isEnding)
  );
  const state = useModel(telemetry, telemetry => {
    const reading = telemetry.rank(poolId, rank.rank);
    return sayState(rank, reading, isEnding, null);
  });
  const load = useModel(telemetry, () => loadOf(props)) ?? 0;
  const name = nameOf(rank);
  const open = (place: IMenuPlace) =>
    openRankMenu(props, poolId, rank.rank, place);
  return (
    <li
      className={`jp-dist-RankCell jp-mod-${mood}`}
      data-colour={colourOf(rank.rank)}
      aria-label={name}
      onContextMenu={onContextMenu(open)}
    >
      <button
        type="button"
        data-rank={rank.rank}
        tabIndex={props.isCurrent ? 0 : -1}
        aria-haspopup="menu"
        aria-label={joinFacts([name, placeOf(rank), state])}
        onClick={event => open(below(event.currentTarget))}
        // The tooltip changes each second, so it is made only when it is needed.
        onPointerEnter={event => (event.currentTarget.title = describe(props))}
        onFocus={event => {
          event.currentTarget.title = describe(props);
          props.choose(rank.rank);
        }}
      >
        {rank.rank}
        <MoodShape mood={mood} />
        <span
          className="jp-dist-RankCell-load"
          style={{ transform: `scaleX(${Math.min(100, load) / 100})` }}
        />
      </button>
    </li>
  );
});

/** Everything that a tile shows, in lines. */
function describe(props: IRankProps): string {
  const { poolId, rank, isEnding, telemetry, clock } = props;
  const reading = telemetry.rank(poolId, rank.rank);
  const { usage } = reading;
  const load = loadOf(props);
  const isOnGpu = gpuOf(rank) !== null;
  const memory = isOnGpu ? usage?.allocated : usage?.memory;
  return [
    `${nameOf(rank)} · ${placeOf(rank)}`,
    sayState(rank, reading, isEnding, clock.now()),
    load === null
      ? ''
      : isOnGpu
        ? trans.__('Utilization of the GPU: %1 %', Math.round(load))
        : trans.__('CPU use: %1 %', Math.round(load)),
    typeof memory !== 'number'
      ? ''
      : isOnGpu
        ? trans.__('%1 allocated', formatBytes(memory))
        : trans.__('%1 of memory', formatBytes(memory)),
    rank.pid === null ? '' : namePid(rank.pid)
  ]
    .filter(Boolean)
    .join('\n');
}

/** A shape for each state, so that nobody has to tell colours apart. */
const SHAPES: Record<Mood, JSX.Element> = {
  idle: (
    <circle
      cx="5"
      cy="5"
      r="3.2"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
    />
  ),
  busy: <circle cx="5" cy="5" r="4" fill="currentColor" />,
  waits: <path d="M5 .8 9.6 9H.4z" fill="currentColor" />,
  silent: <path d="M5 .5v5.5m0 1.5v2" stroke="currentColor" strokeWidth="2" />,
  dead: <path d="m1.5 1.5 7 7m0-7-7 7" stroke="currentColor" strokeWidth="2" />,
  starting: (
    <path
      d="M1 5h8"
      stroke="currentColor"
      strokeWidth="2"
      strokeDasharray="2 1"
    />
  ),
  ending: <path d="M1 5h8" stroke="currentColor" strokeWidth="2" />
};

/**
 * What a rank does, in a shape: a ring is idle, a disc busy, a triangle waits, an exclamation mark does not
 * respond, a cross is dead.
 */
export function MoodShape({ mood }: { mood: Mood }): JSX.Element {
  return (
    <svg
      className={`jp-dist-MoodShape jp-mod-${mood}`}
      viewBox="0 0 10 10"
      aria-hidden="true"
    >
      {SHAPES[mood]}
    </svg>
  );
}
