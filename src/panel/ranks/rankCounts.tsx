import React from 'react';

import type { IPool } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { isSame, useModel } from '../../ui/useModel';
import { moodOf, phaseOf } from '../../words/rankWords';
import type { Mood } from '../../words/rankWords';
import { MOODS, MoodShape } from './moods';
import type { Marks } from './rankTile';

const ORDER = Object.keys(MOODS) as Mood[];

interface IRankCountsProps {
  pool: IPool;
  telemetry: ITelemetry;
  marks: Marks;
}

/** How many ranks do what, which is also what the shapes in the grid mean. */
export function RankCounts(props: IRankCountsProps): JSX.Element {
  const { pool, telemetry, marks } = props;
  const phase = phaseOf(pool);
  const counts = useModel(
    telemetry,
    telemetry => {
      const moods = pool.ranks.map(rank =>
        moodOf(
          rank,
          telemetry.rank(pool.id, rank.rank),
          phase,
          marks.get(rank.rank)
        )
      );
      return ORDER.map(mood => moods.filter(found => found === mood).length);
    },
    isSame
  );
  return (
    <p className="jp-dist-RankCounts jp-dist-quiet">
      {counts.map((count, index) =>
        count === 0 ? null : (
          <span key={ORDER[index]}>
            <MoodShape mood={ORDER[index]} />
            {MOODS[ORDER[index]].count(count)}
          </span>
        )
      )}
    </p>
  );
}
