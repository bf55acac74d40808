import type { IOwner } from './labels';

/**
 * The odd ones out: ranks that have shown something else than most of the ranks. If no more than
 * half of them agree there are none, as a mark on every tab would tell nothing.
 *
 * Two ranks have shown the same if whatever one has shown is the other's, too.
 */
export function oddRanks(
  ranks: readonly number[],
  owners: Iterable<IOwner>
): Set<number> {
  const parts = new Map<number, string[]>(ranks.map(rank => [rank, []]));
  for (const owner of owners) {
    for (const rank of owner.ranks) {
      parts.get(rank)?.push(owner.label);
    }
  }
  const alike = new Map<string, number[]>();
  for (const [rank, labels] of parts) {
    const key = labels.sort().join(' ');
    alike.set(key, [...(alike.get(key) ?? []), rank]);
  }
  for (const group of alike.values()) {
    if (group.length > ranks.length / 2) {
      return new Set(ranks.filter(rank => !group.includes(rank)));
    }
  }
  return new Set();
}
