import React from 'react';

import type { IPool } from '../../model/contract';
import { OrphanNote } from './orphanNote';
import { RunningPool } from './runningPool';
import type { IPanelServices } from '../services';
import { StartingPool } from './startingPool';

/**
 * A pool that has not ended, from its start to its stop.
 */
export function LivePool(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { state, orphaned } = props.pool;
  const isStarting = state === 'PENDING' || state === 'CONFIGURING';
  return (
    <>
      {orphaned !== null && state !== 'COMPLETING' && (
        <OrphanNote {...props} since={orphaned} />
      )}
      {isStarting ? <StartingPool {...props} /> : <RunningPool {...props} />}
    </>
  );
}
