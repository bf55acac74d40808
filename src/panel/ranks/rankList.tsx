import React from 'react';

import type { IPool } from '../../model/contract';
import { trans } from '../../model/trans';
import { useSpan } from '../../ui/sparkline';
import { useLongWait } from '../../ui/useLongWait';
import { useModel } from '../../ui/useModel';
import { saySpan } from '../../words/loadWords';
import { byNode, sayEngine, sayNode } from '../../words/nodeWords';
import { phaseOf } from '../../words/rankWords';
import { sayMarks } from '../../words/waitWords';
import { isStale } from '../connectionNote';
import type { IPanelServices } from '../services';
import { RankGrid } from './rankGrid';
import { RankTile } from './rankTile';
import type { IRankProps, Marks } from './rankTile';
import { gpuOf } from './rankUse';

/** As many ranks have a tile; of more each has a square in a grid. */
const MOST_TILES = 8;
const NO_MARKS: Marks = new Map();

/** Every rank of a pool. */
export function RankList(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, model, commands, clock } = props;
  const { telemetry } = model;
  const className = useModel(model, isStale)
    ? 'jp-dist-Ranks jp-mod-stale'
    : 'jp-dist-Ranks';
  const span = useSpan(props);
  const wait = useLongWait(pool, model);
  const marks = wait ? sayMarks(wait) : NO_MARKS;
  const ranks = new Map<number, IRankProps>(
    pool.ranks.map(rank => [
      rank.rank,
      {
        ...{ poolId: pool.id, rank, span, telemetry, commands, clock },
        phase: phaseOf(pool),
        mark: marks.get(rank.rank) ?? null
      }
    ])
  );
  const tile = (rank: number) => <RankTile key={rank} {...ranks.get(rank)!} />;
  if (ranks.size > MOST_TILES) {
    return (
      <RankGrid
        pool={pool}
        ranks={[...ranks.values()]}
        marks={marks}
        className={className}
      />
    );
  }
  return (
    <>
      {pool.ranks.some(rank => gpuOf(rank) === null) && (
        <p className="jp-dist-quiet">{saySpan('cpu', span)}</p>
      )}
      {byNode(pool).map(({ node, ranks }) => (
        <React.Fragment key={node}>
          {node && (
            <p className="jp-dist-NodeHead">
              <strong title={sayEngine(pool)}>{node}</strong>
              <span className="jp-dist-quiet">{sayNode(ranks)}</span>
            </p>
          )}
          <ul
            className={className}
            aria-label={
              node ? trans.__('Ranks of node %1', node) : trans.__('Ranks')
            }
          >
            {ranks.map(({ rank }) => tile(rank))}
          </ul>
        </React.Fragment>
      ))}
    </>
  );
}
