import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import type { IPool } from '../../model/contract';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { Note, StatePill } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { poolState } from '../../words/poolWords';
import { formatMoment } from '../../words/format';
import type { IPanelServices } from '../services';
import { RunningPool } from './runningPool';

/** A pool that has not ended, from its start to its stop. */
export function LivePool(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { state, orphaned, started } = props.pool;
  // While ranks are replaced, the others stay where they are.
  const isStarting =
    state === 'PENDING' || (state === 'CONFIGURING' && started === null);
  const note = orphaned !== null && state !== 'COMPLETING' && (
    <OrphanNote {...props} />
  );
  return isStarting ? (
    <>
      {note}
      <StartingPool {...props} />
    </>
  ) : (
    <RunningPool {...props}>{note}</RunningPool>
  );
}

/** Says that the pool's kernel is gone, and offers to restart it. */
function OrphanNote(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, commands } = props;
  return (
    <Note kind="warn">
      <p>
        {trans.__(
          'The kernel of this pool has been gone since %1. Its ranks keep their variables, but are stopped after a while. Restart the kernel to keep using them.',
          formatMoment(pool.orphaned ?? 0, serverTime())
        )}
      </p>
      <Button
        small
        className="jp-mod-primary"
        onClick={() =>
          void commands.execute(CommandIDs.attachPool, { pool: pool.id })
        }
      >
        {trans.__('Restart kernel')}
      </Button>
    </Note>
  );
}

/** A pool on its way: what it does now, and how many ranks are ready. */
function StartingPool(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, current, commands } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  const { phase, ready, reason } = pool.progress;
  const cancel = (
    <Button
      small
      disabled={isPending}
      onClick={() =>
        void commands.execute(CommandIDs.stopPool, { pool: pool.id })
      }
    >
      {trans.__('Cancel')}
    </Button>
  );
  if (reason) {
    return (
      <>
        <div className="jp-dist-StateLine">
          <StatePill kind="wait" label={trans.__('Waiting for GPUs')} />
        </div>
        <div className="jp-dist-Spread">
          <span className="jp-dist-quiet">{poolState(pool)?.words}</span>
          {cancel}
        </div>
        <p className="jp-dist-quiet">{reason}</p>
      </>
    );
  }
  const count = trans._n(
    '%2 of %1 rank ready',
    '%2 of %1 ranks ready',
    pool.world_size,
    ready
  );
  return (
    <>
      <div className="jp-dist-StateLine">
        <StatePill kind="wait" label={trans.__('Starting')} />
        <span className="jp-dist-quiet">{phase}</span>
      </div>
      <div
        className="jp-dist-Meter"
        role="progressbar"
        aria-label={count}
        aria-valuemax={pool.world_size}
        aria-valuenow={ready}
      >
        <div
          style={{ transform: `scaleX(${ready / (pool.world_size || 1)})` }}
        />
      </div>
      <div className="jp-dist-Spread">
        <span className="jp-dist-quiet">{count}</span>
        {cancel}
      </div>
    </>
  );
}
