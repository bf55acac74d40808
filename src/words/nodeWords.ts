import type { IPool, IRank } from '../model/contract';
import { trans } from '../model/trans';
import { joinFacts } from './format';

/** A machine of a pool, and the ranks on it. */
interface INode {
  /** Empty if the pool has only one. */
  node: string;
  ranks: IRank[];
}

/** The ranks of a pool by machine, in the order of their ranks. */
export function byNode({ ranks }: IPool): INode[] {
  const names = [...new Set(ranks.map(({ node }) => node ?? ''))];
  if (names.length < 2) {
    return [{ node: '', ranks }];
  }
  return names.map(node => ({
    node,
    ranks: ranks.filter(rank => (rank.node ?? '') === node)
  }));
}

/** `2 ranks`, `2 ranks · 1 dead`. */
export function sayNode(ranks: readonly IRank[]): string {
  const dead = ranks.filter(({ state }) => state === 'dead').length;
  return joinFacts([
    trans._n('%1 rank', '%1 ranks', ranks.length),
    dead > 0 && trans.__('%1 dead', dead)
  ]);
}

/** What started the ranks of a pool on its nodes: `Slurm job 4711`, `Ray`; empty on one machine. */
export function sayEngine({ engine, engine_job }: IPool): string {
  if (!engine || engine === 'local') {
    return '';
  }
  const name = `${engine.charAt(0).toUpperCase()}${engine.slice(1)}`;
  return engine_job ? trans.__('%1 job %2', name, engine_job) : name;
}

/** `2 nodes, Slurm job 4711`; empty on one machine. */
export function sayNodes(pool: IPool): string {
  const count = byNode(pool).length;
  return count < 2
    ? ''
    : [trans._n('%1 node', '%1 nodes', count), sayEngine(pool)]
        .filter(Boolean)
        .join(', ');
}
