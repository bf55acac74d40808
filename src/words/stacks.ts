import type { IStack } from '../model/contract';

/** Ranks that are at the same place. */
export interface IFoldedStack {
  ranks: number[];
  /** Of the first of them. */
  text: string;
}

/** What differs between ranks that run the same code: addresses, and the folders of cells. */
const OWN = /\b0x[0-9a-f]+\b|(?<=ipykernel_)\d+/gi;

/**
 * Stacks of ranks, those that say the same folded into one; in the order of their first ranks.
 */
export function foldStacks(stacks: readonly IStack[]): IFoldedStack[] {
  const folded = new Map<string, IFoldedStack>();
  for (const { rank, text } of stacks) {
    const key = text.replace(OWN, '…');
    const known = folded.get(key);
    if (known) {
      known.ranks.push(rank);
    } else {
      folded.set(key, { ranks: [rank], text });
    }
  }
  return [...folded.values()];
}
