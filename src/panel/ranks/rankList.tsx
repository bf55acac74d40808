import React from 'react';

import type { IPool } from '../../model/contract';
import { RankTile } from './rankTile';
import type { IPanelServices } from '../services';
import { RankGrid } from './rankGrid';

/** As many ranks have a tile; of more each has a small cell. */
const MOST_TILES = 16;

/**
 * Every rank of a pool.
 */
export function RankList(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, model, commands, clock, trans } = props;
  const className =
    model.connection.state === 'stale'
      ? 'jp-dist-Ranks jp-mod-stale'
      : 'jp-dist-Ranks';
  if (pool.ranks.length > MOST_TILES) {
    return <RankGrid {...props} className={className} />;
  }
  return (
    <ul className={className} aria-label={trans.__('Ranks')}>
      {pool.ranks.map(rank => (
        <RankTile
          key={rank.rank}
          poolId={pool.id}
          rank={rank}
          isEnding={pool.state !== 'RUNNING'}
          telemetry={model.telemetry}
          commands={commands}
          clock={clock}
          trans={trans}
        />
      ))}
    </ul>
  );
}
