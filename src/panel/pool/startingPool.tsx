import React from 'react';

import type { IPool } from '../../model/contract';
import { CommandIDs } from '../../model/tokens';
import { Button } from '../../ui/controls';
import type { IPanelServices } from '../services';
import { StatePill } from '../../ui/statePill';

/**
 * A pool on its way: what it does now, and how many ranks are ready.
 */
export function StartingPool(
  props: IPanelServices & { pool: IPool }
): JSX.Element {
  const { pool, model, commands, trans } = props;
  const { phase, ready } = pool.progress;
  const count = trans.__('%1 of %2 ranks ready', ready, pool.world_size);
  return (
    <>
      <div className="jp-dist-StateLine">
        <StatePill kind="wait" label={trans.__('Starting')} />
        <span className="jp-dist-quiet">{phase}</span>
      </div>
      <progress
        className="jp-dist-Progress"
        aria-label={count}
        max={pool.world_size}
        value={ready}
      />
      <div className="jp-dist-Spread">
        <span className="jp-dist-quiet">{count}</span>
        <Button
          isDisabled={model.isPending}
          onClick={() =>
            void commands.execute(CommandIDs.stopPool, { pool: pool.id })
          }
        >
          {trans.__('Cancel')}
        </Button>
      </div>
    </>
  );
}
