import React from 'react';

import type { IPool } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { trans } from '../../model/trans';
import { isSame, useModel } from '../../ui/useModel';
import { moodOf } from '../../words/rankWords';
import type { Mood } from '../../words/rankWords';
import { MoodShape } from './rankCell';

const ORDER: Mood[] = [
  'dead',
  'silent',
  'waits',
  'busy',
  'idle',
  'starting',
  'ending'
];

interface IRankCountsProps {
  pool: IPool;
  telemetry: ITelemetry;
}

/** How many ranks do what, which is also what the shapes in the grid mean. */
export function RankCounts(props: IRankCountsProps): JSX.Element {
  const { pool, telemetry } = props;
  const isEnding = pool.state !== 'RUNNING';
  const counts = useModel(
    telemetry,
    telemetry => {
      const moods = pool.ranks.map(rank =>
        moodOf(rank, telemetry.rank(pool.id, rank.rank), isEnding)
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
            {sayMood(ORDER[index], count)}
          </span>
        )
      )}
    </p>
  );
}

function sayMood(mood: Mood, count: number): string {
  switch (mood) {
    case 'dead':
      return trans.__('%1 dead', count);
    case 'silent':
      return trans._n('%1 does not respond', '%1 do not respond', count);
    case 'waits':
      return trans._n('%1 waits', '%1 wait', count);
    case 'busy':
      return trans.__('%1 busy', count);
    case 'idle':
      return trans.__('%1 idle', count);
    case 'starting':
      return trans.__('%1 starting', count);
    case 'ending':
      return trans.__('%1 stopping', count);
  }
}
