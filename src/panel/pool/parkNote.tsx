import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import type { IPool } from '../../model/contract';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import { Note } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { formatBytes, formatDuration } from '../../words/format';
import { sayLine } from '../../words/lineWords';
import type { IPanelServices } from '../services';

/** A pool that is parked, or on its way there or back, or could not go. */
export function ParkNote(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, current, commands } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  const button = (label: string, command: string, isMain = false) => (
    <Button
      small
      className={isMain ? 'jp-mod-primary' : undefined}
      disabled={isPending}
      onClick={() => void commands.execute(command, { pool: pool.id })}
    >
      {label}
    </Button>
  );
  const { parking } = pool;
  const resume = button(trans.__('Resume'), CommandIDs.resumePool, true);
  if (parking && !parking.failure) {
    const place = parking.line && sayLine(parking.line, serverTime());
    return (
      <Note>
        <span>
          {parking.resume
            ? trans.__('Resuming the pool.')
            : trans.__('Parking the pool.')}{' '}
          {[parking.reason, place].filter(Boolean).join(' ')}
        </span>
        {parking.resume &&
          pool.state === 'SUSPENDED' &&
          button(trans.__('Stay Parked'), CommandIDs.parkPool)}
      </Note>
    );
  }
  const failure = parking?.failure && (
    <Note kind="warn">
      <p>{`${parking.failure.message} ${parking.failure.hint}`.trim()}</p>
      {pool.state === 'SUSPENDED' ? resume : null}
    </Note>
  );
  if (pool.state !== 'SUSPENDED') {
    return failure || null;
  }
  return (
    failure || (
      <Note>
        <ParkedSince {...props} />
        {resume}
      </Note>
    )
  );
}

/** `Parked for 12 min: others can use GPUs 0, 1. 41 GiB are kept in memory. …` */
function ParkedSince({
  pool,
  clock
}: IPanelServices & { pool: IPool }): JSX.Element {
  const seconds = useNow(clock) - (pool.parked?.since ?? 0);
  const labels = pool.ranks.flatMap(({ gpu }) => (gpu ? [gpu.label] : []));
  const gpus = [...new Set(labels)];
  return (
    <span>
      {trans._n(
        'Parked for %2: others can use GPU %3.',
        'Parked for %2: others can use GPUs %3.',
        gpus.length,
        formatDuration(seconds),
        gpus.join(', ')
      )}{' '}
      {trans.__(
        'This machine keeps %1 of them in memory. The next cell on ranks brings them back.',
        formatBytes(pool.parked?.nbytes ?? 0)
      )}
    </span>
  );
}
