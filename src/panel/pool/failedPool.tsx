import React from 'react';

import type { IPool } from '../../model/contract';
import { LastLines } from './lastLines';
import type { IPanelServices } from '../services';
import { StartForm } from '../start/form';
import { StatePill } from '../../ui/statePill';

/**
 * A pool that failed: why, what to do about it, and another try.
 */
export function FailedPool(
  props: IPanelServices & { pool: IPool }
): JSX.Element {
  const { pool, trans } = props;
  const reason = pool.reason;
  const log = reason?.stderr.join('\n') ?? '';
  return (
    <>
      <div className="jp-dist-StateLine">
        <StatePill kind="error" label={trans.__('Failed')} />
      </div>
      {reason && (
        <div className="jp-dist-Reason" role="alert">
          <p className="jp-dist-error">{reason.message}</p>
          {reason.hint && <p>{reason.hint}</p>}
        </div>
      )}
      {log && <LastLines log={log} trans={trans} />}
      <StartForm
        {...props}
        ranks={pool.world_size}
        label={trans.__('Start again')}
      />
    </>
  );
}
