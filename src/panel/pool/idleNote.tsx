import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import type { IPool } from '../../model/contract';
import { canPark, parkStage } from '../../model/parking';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import { Note } from '../../ui/controls';
import { formatDuration } from '../../words/format';
import type { IPanelServices } from '../services';

/** Seconds: who runs no cell for that long may have forgotten the pool. */
const LONG = 3600;

/** A pool has GPUs that nobody else gets, and has done nothing for long; a button gives them back. */
export function IdleNote(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, clock, commands } = props;
  const now = useNow(clock);
  const labels = [
    ...new Set(pool.ranks.flatMap(({ gpu }) => (gpu ? [gpu.label] : [])))
  ];
  const seconds = pool.idle_since === null ? 0 : now - pool.idle_since;
  const isOnGpus =
    pool.state === 'RUNNING' && parkStage(pool) === null && labels.length > 0;
  if (!isOnGpus || !(seconds >= LONG)) {
    return null;
  }
  return (
    <Note>
      <span>
        {trans._n(
          'GPU %2 has been idle for %3.',
          'GPUs %2 have been idle for %3.',
          labels.length,
          labels.join(', '),
          formatDuration(seconds)
        )}
      </span>
      {canPark(pool) && (
        <Button
          small
          title={trans.__(
            'Give the GPUs to others, and keep the variables of the ranks.'
          )}
          onClick={() =>
            void commands.execute(CommandIDs.parkPool, { pool: pool.id })
          }
        >
          {trans.__('Park…')}
        </Button>
      )}
      <Button
        small
        title={trans.__(
          'End all ranks, so that others can use the GPUs; variables are lost.'
        )}
        onClick={() =>
          void commands.execute(CommandIDs.stopPool, { pool: pool.id })
        }
      >
        {trans.__('Release…')}
      </Button>
    </Note>
  );
}
