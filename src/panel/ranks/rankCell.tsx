import React, { memo } from 'react';

import { trans } from '../../model/trans';
import { colourOf } from '../../ui/meters';
import { onContextMenu } from '../../ui/menu';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts, namePid } from '../../words/format';
import { placeOf, moodOf, nameOf, sayState } from '../../words/rankWords';
import { MoodShape } from './moods';
import { openRankMenu } from './rankMenu';
import type { IRankProps } from './rankTile';
import { gpuOf, loadOf } from './rankUse';

interface IRankCellProps extends IRankProps {
  /** Whether the keyboard comes to this cell first. */
  isCurrent: boolean;
  /** Whether its tile is shown below the grid. */
  isOpen: boolean;
  choose: (rank: number) => void;
  toggle: (rank: number) => void;
}

/** One rank of many: its number and colour, what it does as a shape, and how busy its device is. */
export const RankCell = memo(function RankCell(
  props: IRankCellProps
): JSX.Element {
  const { poolId, rank, phase, mark, telemetry } = props;
  const mood = useModel(telemetry, telemetry =>
    moodOf(rank, telemetry.rank(poolId, rank.rank), phase, mark)
  );
  const state = useModel(telemetry, telemetry => {
    const reading = telemetry.rank(poolId, rank.rank);
    return sayState(rank, reading, phase, null, mark);
  });
  const load = useModel(telemetry, () => loadOf(props)) ?? 0;
  return (
    <div
      className={`jp-dist-RankCell jp-mod-${mood}`}
      role="option"
      data-rank={rank.rank}
      data-colour={colourOf(rank.rank)}
      tabIndex={props.isCurrent ? 0 : -1}
      aria-selected={props.isOpen}
      aria-label={joinFacts([nameOf(rank), state, placeOf(rank)])}
      onClick={() => props.toggle(rank.rank)}
      onContextMenu={onContextMenu(place =>
        openRankMenu(props, poolId, rank.rank, place)
      )}
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
    </div>
  );
});

/** Everything that a tile shows, in lines. */
function describe(props: IRankProps): string {
  const { poolId, rank, phase, mark, telemetry, clock } = props;
  const reading = telemetry.rank(poolId, rank.rank);
  const { usage } = reading;
  const load = loadOf(props);
  const isOnGpu = gpuOf(rank) !== null;
  const memory = isOnGpu ? usage?.allocated : usage?.memory;
  return [
    `${nameOf(rank)} · ${placeOf(rank)}`,
    sayState(rank, reading, phase, clock.now(), mark),
    load === null
      ? ''
      : isOnGpu
        ? trans.__('Utilization of the GPU: %1 %', Math.round(load))
        : trans.__('CPU use: %1 %', Math.round(load)),
    typeof memory !== 'number'
      ? ''
      : isOnGpu
        ? phase === 'parked'
          ? trans.__(
              '%1, kept in the memory of this machine',
              formatBytes(memory)
            )
          : trans.__('%1 allocated', formatBytes(memory))
        : trans.__('%1 of memory', formatBytes(memory)),
    rank.pid === null ? '' : namePid(rank.pid)
  ]
    .filter(Boolean)
    .join('\n');
}
