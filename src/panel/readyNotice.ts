import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';

import type { IPool } from '../model/contract';
import type { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { cutName } from '../words/queueWords';

/** Tell of pools that have waited for GPUs, and are ready now: their users do something else meanwhile. */
export function notifyWhenReady(
  model: IPoolsModel,
  open: (pool: IPool) => void
): void {
  const waiting = new Set<string>();
  model.changed.connect(() => {
    for (const pool of model.pools.values()) {
      if (pool.state === 'PENDING' && pool.progress.reason) {
        waiting.add(pool.id);
      } else if (pool.ended !== null) {
        waiting.delete(pool.id);
      } else if (pool.state === 'RUNNING' && waiting.delete(pool.id)) {
        tell(pool);
      }
    }
  });

  function tell(pool: IPool): void {
    const words = trans._n(
      'The GPUs are free: %1 rank of %2 is ready.',
      'The GPUs are free: %1 ranks of %2 are ready.',
      pool.world_size,
      cutName(PathExt.basename(pool.name) || pool.id)
    );
    const action = {
      label: trans.__('Open notebook'),
      callback: () => open(pool)
    };
    Notification.success(words, {
      autoClose: false,
      actions: pool.name ? [action] : []
    });
  }
}
