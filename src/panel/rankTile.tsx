import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IRank } from '../model/contract';
import type { ITelemetry } from '../model/telemetry';
import { useNow } from './clock';
import type { Clock } from './clock';
import { formatDuration, formatStopwatch } from './format';
import { colourOf } from './meters';
import { RankUse } from './rankUse';

interface IRankTileProps {
  poolId: string;
  rank: IRank;
  /** Whether the pool ends, so that a rank that is gone is no bad news. */
  isEnding: boolean;
  telemetry: ITelemetry;
  clock: Clock;
  trans: TranslationBundle;
}

/**
 * One rank: where it sits and what it does.
 */
export function RankTile(props: IRankTileProps): JSX.Element {
  const { rank, isEnding, trans } = props;
  const name = trans.__('Rank %1', rank.rank);
  const place = rank.gpu ? trans.__('GPU %1', rank.gpu.label) : trans.__('CPU');
  return (
    <li
      className={`jp-dist-RankTile jp-mod-${isEnding ? 'ending' : rank.state}`}
      data-colour={colourOf(rank.rank)}
      aria-label={name}
    >
      <div className="jp-dist-Spread">
        <strong>{name}</strong>
        <span className="jp-dist-quiet" title={rank.gpu?.name}>
          {place}
        </span>
      </div>
      <div className="jp-dist-RankTile-state">
        <RankState {...props} />
      </div>
      <RankUse {...props} />
    </li>
  );
}

function RankState(props: IRankTileProps): JSX.Element {
  const { rank, isEnding, trans } = props;
  if (isEnding) {
    return (
      <>{rank.state === 'dead' ? trans.__('stopped') : trans.__('stopping')}</>
    );
  }
  switch (rank.state) {
    case 'starting':
      return <>{trans.__('starting')}</>;
    case 'dead':
      return (
        <>{rank.exit ? trans.__('dead: %1', rank.exit) : trans.__('dead')}</>
      );
    default:
      return <RankSince {...props} />;
  }
}

function RankSince({ rank, clock, trans }: IRankTileProps): JSX.Element {
  const seconds = useNow(clock) - rank.since;
  return (
    <>
      {rank.state === 'busy'
        ? trans.__('busy %1', formatStopwatch(seconds, trans))
        : trans.__('idle %1', formatDuration(seconds, trans))}
    </>
  );
}
