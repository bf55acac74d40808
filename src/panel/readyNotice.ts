import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';

import type { IPool } from '../model/contract';
import { parkStage } from '../model/parking';
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
      const stage = parkStage(pool);
      const isInLine =
        (pool.state === 'PENDING' && pool.progress.reason) ||
        (stage === 'waiting' && pool.parking?.line);
      if (isInLine) {
        waiting.add(pool.id);
      } else if (pool.ended !== null || stage === 'parked') {
        waiting.delete(pool.id);
      } else if (pool.state === 'RUNNING' && !stage) {
        // One that could not be resumed on all ranks says so in the panel.
        if (waiting.delete(pool.id) && !pool.parking?.failure) {
          tell(pool);
        }
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
