import type { IPool, IRank } from '../model/contract';

export function makeRank(rank: number, changes: Partial<IRank> = {}): IRank {
  return {
    rank,
    local_rank: rank,
    device: 'cpu',
    gpu: null,
    pid: 1000 + rank,
    state: 'idle',
    since: 100,
    exit: null,
    ...changes
  };
}

export function makePool(changes: Partial<IPool> = {}): IPool {
  return {
    id: 'p1',
    kernel_id: 'k1',
    name: 'train.ipynb',
    host: 'h',
    state: 'RUNNING',
    version: 1,
    reason: null,
    world_size: 2,
    backend: 'gloo',
    placement: 'cycle',
    start_method: 'fork',
    notices: [],
    progress: { phase: 'starting ranks', ready: 0 },
    created: 50,
    started: 100,
    ended: null,
    python: 'python',
    cwd: '.',
    folder: '.',
    generation: 1,
    ranks: [makeRank(0), makeRank(1)],
    ...changes
  };
}

/** Wait until something is true, for at most four seconds. */
export async function until(isTrue: () => boolean): Promise<void> {
  const end = Date.now() + 4000;
  while (!isTrue()) {
    if (Date.now() > end) {
      throw new Error(`Still not true: ${isTrue.toString()}`);
    }
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
