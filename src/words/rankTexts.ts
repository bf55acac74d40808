import type { IApiError, IPool, IStack } from '../model/contract';
import type { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { formatRanks } from './format';

/** A piece of text to read, or why there is none. */
export interface IBlock {
  /** Empty where there is one block only. */
  heading: string;
  text: string;
  error: IApiError | null;
}

/** Where ranks are; those at the same place together. */
export async function loadStacks(
  model: IPoolsModel,
  pool: IPool,
  ranks: readonly number[]
): Promise<IBlock[]> {
  const failures: IBlock[] = [];
  const stacks = await Promise.all(
    ranks.map(async rank => {
      try {
        return await model.requests.stack(pool.id, rank);
      } catch (error) {
        failures.push(failure(rank, error as IApiError));
        return null;
      }
    })
  );
  const blocks = foldStacks(
    stacks.filter((stack): stack is IStack => stack !== null)
  ).map(({ ranks, text }) => ({
    heading: trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks)),
    text,
    error: null
  }));
  return [...blocks, ...failures];
}

/** What a rank wrote to stderr last. */
export async function loadLog(
  model: IPoolsModel,
  pool: IPool,
  rank: number
): Promise<IBlock[]> {
  try {
    const { lines } = await model.requests.log(pool.id, rank);
    const nothing = trans.__('Rank %1 has written nothing to stderr.', rank);
    return [{ heading: '', text: lines.join('\n') || nothing, error: null }];
  } catch (error) {
    return [failure(rank, error as IApiError)];
  }
}

function failure(rank: number, error: IApiError): IBlock {
  return { heading: trans.__('rank %1', rank), text: '', error };
}

/** As it is copied: each block below its heading. */
export function textOf(blocks: readonly IBlock[]): string {
  return blocks
    .map(({ heading, text, error }) => {
      const body = error ? `${error.message} ${error.hint}`.trim() : text;
      return heading ? `${heading}:\n${body}` : body;
    })
    .join('\n\n');
}

/** Ranks that are at the same place. */
interface IFoldedStack {
  ranks: number[];
  /** Of the first of them. */
  text: string;
}

/** What differs between ranks that run the same code: addresses, and the folders of cells. */
const OWN = /\b0x[0-9a-f]+\b|(?<=ipykernel_)\d+/gi;

/** Stacks of ranks, those that say the same folded into one; in the order of their first ranks. */
function foldStacks(stacks: readonly IStack[]): IFoldedStack[] {
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
