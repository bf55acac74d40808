import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { isBusy } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { parkStage } from '../../model/parking';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import { Note } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { joinSentences } from '../../words/format';
import { sayLine } from '../../words/lineWords';
import { sayDeadParked, sayParked } from '../../words/parkWords';
import type { IPanelServices } from '../services';

/** A pool that is parked, or on its way there or back, or could not go. */
export function ParkNote(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, model, current, commands } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  const stage = parkStage(pool);
  const failure = pool.parking?.failure;
  if (!stage && (!failure || pool.state !== 'RUNNING')) {
    return null;
  }
  const button = (label: string, act: () => unknown, isMain = false) => (
    <Button
      small
      className={isMain ? 'jp-mod-primary' : undefined}
      disabled={isPending}
      onClick={() => void act()}
    >
      {label}
    </Button>
  );
  const command = (id: string) => () => commands.execute(id, { pool: pool.id });
  const dead = sayDeadParked(pool);
  return (
    <Note kind={failure || dead ? 'warn' : 'info'}>
      {failure && <p>{`${failure.message} ${failure.hint}`.trim()}</p>}
      {stage !== 'parked' && !failure && <Progress pool={pool} />}
      {dead && <p>{dead}</p>}
      {(stage === 'parked' || stage === 'waiting') && <Parked {...props} />}
      {stage === 'parked'
        ? button(trans.__('Resume'), command(CommandIDs.resumePool), true)
        : stage === 'waiting'
          ? button(trans.__('Stay Parked'), command(CommandIDs.parkPool))
          : stage === 'parking' && isBusy(pool)
            ? button(trans.__('Do Not Park'), () => model.resume(pool.id))
            : // A pool that is not parked forgets then what has failed.
              failure &&
              button(trans.__('Dismiss'), () => model.resume(pool.id))}
    </Note>
  );
}

/** What the server does or waits for, and the place in line. */
function Progress({ pool }: { pool: IPool }): JSX.Element {
  const { resume, reason = '', line } = pool.parking ?? {};
  const now = resume
    ? trans.__('Resuming the pool.')
    : trans.__('Parking the pool.');
  return (
    <>
      <p>{reason || now}</p>
      {line && <p>{sayLine(line, serverTime())}</p>}
    </>
  );
}

function Parked({
  pool,
  clock
}: IPanelServices & { pool: IPool }): JSX.Element {
  const now = useNow(clock);
  return (
    <p>
      {joinSentences([
        sayParked(pool, now),
        parkStage(pool) === 'parked'
          ? trans.__('The next cell on ranks resumes the pool.')
          : ''
      ])}
    </p>
  );
}
