import React, { useCallback, useRef, useState } from 'react';
import { flushSync } from 'react-dom';

import type { IPool } from '../../model/contract';
import type { IPanelServices } from '../services';
import { RankCell } from './rankCell';
import { RankCounts } from './rankCounts';
import { RankTile } from './rankTile';
import { useWindow } from './useWindow';

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

/**
 * Very many ranks: a small cell for each, of which only those in sight are drawn.
 */
export function RankGrid(
  props: IPanelServices & { pool: IPool; className: string }
): JSX.Element {
  const { pool, model, commands, clock, trans } = props;
  const list = useRef<HTMLUListElement>(null);
  const { columns, first, end } = useWindow(list, '.jp-dist-Section');
  const [current, setCurrent] = useState(0);
  const rows = Math.ceil(pool.ranks.length / columns);
  const choose = useCallback((rank: number) => setCurrent(rank), []);

  const onKeyDown = (event: React.KeyboardEvent) => {
    const next = moved(event.key, current, columns, pool.ranks.length - 1);
    if (next !== null && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      event.stopPropagation();
      // It may have been out of sight, and has to be there to be focused.
      flushSync(() => setCurrent(next));
      list.current
        ?.querySelector<HTMLElement>(`[data-rank="${next}"]`)
        ?.focus();
    }
  };

  return (
    <>
      <RankCounts pool={pool} telemetry={model.telemetry} trans={trans} />
      <ul
        ref={list}
        className={`${props.className} jp-mod-many`}
        style={{
          gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
          gridTemplateRows: `repeat(${rows}, 26px)`
        }}
        aria-label={trans.__('Ranks')}
        onKeyDown={onKeyDown}
      >
        {pool.ranks.map((rank, index) => {
          const row = Math.floor(index / columns);
          // The keyboard's place stays, wherever the list is scrolled to.
          return (row >= first && row < end) || index === current ? (
            <RankCell
              key={rank.rank}
              poolId={pool.id}
              rank={rank}
              isEnding={pool.state !== 'RUNNING'}
              telemetry={model.telemetry}
              commands={commands}
              clock={clock}
              trans={trans}
              row={row}
              column={index % columns}
              count={pool.ranks.length}
              isCurrent={index === current}
              choose={choose}
            />
          ) : null;
        })}
      </ul>
    </>
  );
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
