import type { CommandRegistry } from '@lumino/commands';
import React, { memo } from 'react';

import type { IRank } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import type { Clock } from '../../ui/clock';
import { startCellDrag } from '../../ui/codeCells';
import { MenuButton } from '../../ui/controls';
import { onContextMenu } from '../../ui/menu';
import type { IMenuPlace } from '../../ui/menu';
import { colourOf } from '../../ui/meters';
import { useModel } from '../../ui/useModel';
import { namePid } from '../../words/format';
import {
  isTimed,
  placeOf,
  moodOf,
  nameOf,
  sayState
} from '../../words/rankWords';
import type { Phase } from '../../words/rankWords';
import { openRankMenu } from './rankMenu';
import { RankLoad, RankUse } from './rankUse';

/** What is told of the ranks that others wait for. */
export type Marks = ReadonlyMap<number, string>;

/** These change only when the rank does, so that news of other ranks cause no rerender. */
export interface IRankProps {
  poolId: string;
  rank: IRank;
  /** Whether the pool ends, so that a rank that is gone is no bad news. */
  phase: Phase;
  /** What is told of it if others wait for it. */
  mark: string | null;
  /** Seconds that a curve reaches back. */
  span: number;
  telemetry: ITelemetry;
  commands: CommandRegistry;
  clock: Clock;
}

/** One rank: its device, its state, its load and its menu. */
export const RankTile = memo(function RankTile(props: IRankProps): JSX.Element {
  const { poolId, rank, phase, mark, telemetry } = props;
  const mood = useModel(telemetry, telemetry =>
    moodOf(rank, telemetry.rank(poolId, rank.rank), phase, mark)
  );
  const name = nameOf(rank);
  const open = (place: IMenuPlace) =>
    openRankMenu(props, poolId, rank.rank, place);
  const Words = isTimed(mood) ? TimedWords : FixedWords;
  return (
    <li
      className={`jp-dist-RankTile jp-mod-${mood}`}
      data-colour={colourOf(rank.rank)}
      aria-label={name}
      onContextMenu={onContextMenu(open)}
    >
      <div className="jp-dist-RankTile-head">
        <strong
          title={[
            trans.__('Drag it into a notebook for a cell on this rank.'),
            rank.pid === null ? '' : namePid(rank.pid)
          ]
            .join('\n')
            .trim()}
          onPointerDown={event =>
            startCellDrag(event, {
              source: `%%rank [${rank.rank}]\n`,
              label: name
            })
          }
        >
          {name}
        </strong>
        <span className="jp-dist-quiet" title={rank.gpu?.name ?? rank.node}>
          {placeOf(rank)}
        </span>
      </div>
      <RankLoad {...props} />
      <div className="jp-dist-RankTile-state">
        <Words {...props} />
      </div>
      <RankUse {...props}>
        <MenuButton
          label={trans.__('Menu of rank %1', rank.rank)}
          open={open}
        />
      </RankUse>
    </li>
  );
});

function TimedWords(props: IRankProps): JSX.Element {
  const { poolId, rank, phase, mark, telemetry, clock } = props;
  const reading = telemetry.rank(poolId, rank.rank);
  return <>{sayState(rank, reading, phase, useNow(clock), mark)}</>;
}

function FixedWords(props: IRankProps): JSX.Element {
  const { poolId, rank, phase, mark, telemetry } = props;
  const reading = telemetry.rank(poolId, rank.rank);
  return <>{sayState(rank, reading, phase, null, mark)}</>;
}
