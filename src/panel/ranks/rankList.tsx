import React, { useCallback, useRef, useState } from 'react';

import type { IPool, IRank } from '../../model/contract';
import { trans } from '../../model/trans';
import { useSpan } from '../../ui/sparkline';
import { useModel } from '../../ui/useModel';
import { saySpan } from '../../words/load';
import { isStale } from '../connectionNote';
import type { IPanelServices } from '../services';
import { byNode, sayEngine, sayNode } from '../../words/nodeWords';
import { RankCell } from './rankCell';
import { RankCounts } from './rankCounts';
import { RankTile } from './rankTile';
import { gpuOf } from './rankUse';
import type { IRankProps } from './rankTile';

/** As many ranks have a tile; of more each has a small cell. */
const MOST_TILES = 16;

/** Every rank of a pool. */
export function RankList(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, model } = props;
  const className = useModel(model, isStale)
    ? 'jp-dist-Ranks jp-mod-stale'
    : 'jp-dist-Ranks';
  const span = useSpan(props);
  if (pool.ranks.length > MOST_TILES) {
    return <RankGrid {...props} className={className} span={span} />;
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
            {ranks.map(rank => (
              <RankTile key={rank.rank} {...propsOf(rank, span, props)} />
            ))}
          </ul>
        </React.Fragment>
      ))}
    </>
  );
}

/** Very many ranks: a small cell for each. */
function RankGrid(
  props: IPanelServices & { pool: IPool; className: string; span: number }
): JSX.Element {
  const { pool, model } = props;
  const list = useRef<HTMLUListElement>(null);
  const [chosen, setChosen] = useState(0);
  // A pool that goes on without a node has fewer ranks.
  const current = Math.min(chosen, pool.ranks.length - 1);
  const choose = useCallback((rank: number) => setChosen(rank), []);

  const onKeyDown = (event: React.KeyboardEvent) => {
    const cells = [...(list.current?.children ?? [])] as HTMLElement[];
    const columns = cells.findIndex(
      ({ offsetTop }) => offsetTop > cells[0].offsetTop
    );
    const next = moved(
      event.key,
      current,
      columns > 0 ? columns : cells.length,
      cells.length - 1
    );
    if (next !== null && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      event.stopPropagation();
      cells[next].querySelector('button')?.focus();
    }
  };

  return (
    <>
      <RankCounts pool={pool} telemetry={model.telemetry} />
      <ul
        ref={list}
        className={`${props.className} jp-mod-many`}
        aria-label={trans.__('Ranks')}
        onKeyDown={onKeyDown}
      >
        {pool.ranks.map((rank, index) => (
          <RankCell
            key={rank.rank}
            {...propsOf(rank, props.span, props)}
            isCurrent={index === current}
            choose={choose}
          />
        ))}
      </ul>
    </>
  );
}

/** What is shown of a rank, and by what means. */
function propsOf(
  rank: IRank,
  span: number,
  props: IPanelServices & { pool: IPool }
): IRankProps {
  const { pool, model, commands, clock } = props;
  const isEnding = pool.state !== 'RUNNING';
  const { telemetry } = model;
  return {
    ...{ poolId: pool.id, rank, isEnding, span },
    ...{ telemetry, commands, clock }
  };
}

/** Where a key leads from a cell; null if it is no key that leads anywhere. */
function moved(
  key: string,
  current: number,
  columns: number,
  last: number
): number | null {
  const targets: Record<string, number> = {
    ArrowLeft: current - 1,
    ArrowRight: current + 1,
    ArrowUp: current - columns,
    ArrowDown: current + columns,
    Home: 0,
    End: last
  };
  if (!(key in targets)) {
    return null;
  }
  const isInside = targets[key] >= 0 && targets[key] <= last;
  return isInside ? targets[key] : current;
}
