import type { IParking, IPool, IReason } from '../model/contract';
import { makePool, makeRank } from './samples';

/** 41 GiB of ranks that hold nothing on their GPUs. */
export const parked = { since: 0, nbytes: 41 * 2 ** 30, leased: false };
export const failure: IReason = {
  ...{ code: 'x', message: 'The driver failed.', hint: 'Wait.' },
  ...{ rank: null, stderr: [] }
};

/** What is told of a pool that is being parked, or else resumed. */
export function makeParking(changes: Partial<IParking> = {}): IParking {
  return { resume: true, reason: '', line: null, failure: null, ...changes };
}

/** Two ranks on GPUs 0 and 1, which may be parked. */
export function makeParkable(changes: Partial<IPool> = {}): IPool {
  const ranks = [0, 1].map(index => {
    const gpu = { index, label: `${index}`, uuid: `GPU-${index}`, name: 'T4' };
    return makeRank(index, { gpu, device: `cuda:${index}` });
  });
  return makePool({
    ...{ ranks, park_after: 1200, leases: 'exclusive' },
    ...changes
  });
}
