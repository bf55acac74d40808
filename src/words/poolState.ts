import type { TranslationBundle } from '@jupyterlab/translation';

import { deadRanks } from '../model/contract';
import type { IPool } from '../model/contract';
import { nameRanks } from './format';

export interface IPoolState {
  mood: 'idle' | 'busy' | 'wait' | 'error';
  /** A word or two: `busy`, `starting 1/4`, `rank 1 died`. */
  words: string;
}

/**
 * How a pool does, in short; null when it has ended as it was told to.
 */
export function poolState(
  pool: IPool,
  trans: TranslationBundle
): IPoolState | null {
  const { state, progress, world_size } = pool;
  switch (state) {
    case 'PENDING':
      return { mood: 'wait', words: progress.phase || trans.__('waiting') };
    case 'CONFIGURING':
      return {
        mood: 'wait',
        words: trans.__('starting %1/%2', progress.ready, world_size)
      };
    case 'RUNNING':
      return runningState(pool, trans);
    case 'COMPLETING':
      return { mood: 'wait', words: trans.__('stopping') };
    case 'FAILED':
      return { mood: 'error', words: trans.__('failed') };
    default:
      return null;
  }
}

function runningState(pool: IPool, trans: TranslationBundle): IPoolState {
  const dead = deadRanks(pool);
  if (dead.length > 0) {
    return {
      mood: 'error',
      words: trans.__('%1 died', nameRanks(dead, pool, trans))
    };
  }
  return pool.ranks.some(({ state }) => state === 'busy')
    ? { mood: 'busy', words: trans.__('busy') }
    : { mood: 'idle', words: trans.__('idle') };
}

/** `1 rank`, `4 ranks`. */
export function countRanks(count: number, trans: TranslationBundle): string {
  return trans._n('%1 rank', '%1 ranks', count);
}
