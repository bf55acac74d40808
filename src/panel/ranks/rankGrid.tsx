import React, { useCallback, useRef, useState } from 'react';

import type { IPool } from '../../model/contract';
import { trans } from '../../model/trans';
import { useInSight } from '../../ui/useInSight';
import { nameOf } from '../../words/rankWords';
import { RankCell } from './rankCell';
import { RankCounts } from './rankCounts';
import { RankTile } from './rankTile';
import type { IRankProps, Marks } from './rankTile';

/** Of more ranks, the squares have their least size. */
const MANY = 64;

interface IRankGridProps {
  pool: IPool;
  ranks: readonly IRankProps[];
  marks: Marks;
  className: string;
}

/** Many ranks: a square for each, and the tile of the one that is opened. */
export function RankGrid(props: IRankGridProps): JSX.Element {
  const { pool, ranks, marks, className } = props;
  const grid = useRef<HTMLDivElement>(null);
  const [chosen, setChosen] = useState(0);
  const [openRank, setOpenRank] = useState<number | null>(null);
  // A pool that goes on without a node has fewer ranks.
  const current = Math.min(chosen, ranks.length - 1);
  const open = ranks.find(({ rank }) => rank.rank === openRank);
  const tile = useInSight<HTMLUListElement>(open && nameOf(open.rank));
  const choose = useCallback((rank: number) => setChosen(rank), []);
  const toggle = useCallback(
    (rank: number) => setOpenRank(shown => (shown === rank ? null : rank)),
    []
  );

  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const cells = [...(grid.current?.children ?? [])] as HTMLElement[];
    const columns = cells.findIndex(
      ({ offsetTop }) => offsetTop > cells[0].offsetTop
    );
    const next = moved(
      event.key,
      current,
      columns > 0 ? columns : cells.length,
      cells.length - 1
    );
    if (next !== null) {
      cells[next].focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      toggle(ranks[current].rank.rank);
    } else if (event.key === 'Escape' && open) {
      setOpenRank(null);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <>
      <RankCounts pool={pool} telemetry={ranks[0].telemetry} marks={marks} />
      <div
        ref={grid}
        role="listbox"
        className={`${className} jp-mod-grid${ranks.length > MANY ? ' jp-mod-many' : ''}`}
        aria-label={trans.__('Ranks')}
        aria-orientation="horizontal"
        onKeyDown={onKeyDown}
      >
        {ranks.map((rank, index) => (
          <RankCell
            key={rank.rank.rank}
            {...rank}
            isCurrent={index === current}
            isOpen={rank === open}
            choose={choose}
            toggle={toggle}
          />
        ))}
      </div>
      {open && (
        <ul ref={tile} aria-label={trans.__('The opened rank')}>
          <RankTile {...open} />
        </ul>
      )}
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
