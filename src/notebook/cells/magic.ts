import { trans } from '../../model/trans';

export const MAGIC = '%%distributed';

/** The ranks of a cell as it names them, or `all`; null if it runs in the notebook. */
export type Where = string | null;

const FIRST_LINE = /^\s*(.*)/;
const OUR_MAGIC = /^%%(distributed|rank)(?![\w-])(.*)$/;
const RANKS_OPTION = /(?:^|\s)(?:-r|--ranks)[ =]?(\S+)/;
/** The first line that is not blank or a comment. */
const FIRST_CODE = /^(?:[ \t]*(?:#.*)?\n)*\s*(.*)/;
const OURS =
  /^(%%(distributed|rank|px)\b|%(dist_\w+|sync|px|autopx)\b|%(re|un)?load_ext\s+jupyter_dist_server\b)/;
const LISTED = /^\d+(-\d+)?$/;
const MOST = 8;

/**
 * Where a cell runs. As in IPython, a magic counts only in the first line that is not blank. In the mode,
 * a cell without a magic of ours runs on all ranks.
 */
export function whereRuns(source: string, isMode = false): Where {
  return whereItSays(source) ?? (isMode && isCode(source) ? 'all' : null);
}

function isCode(source: string): boolean {
  const code = FIRST_CODE.exec(source)?.[1] ?? '';
  return code !== '' && !code.startsWith('#') && !OURS.test(code);
}

function whereItSays(source: string): Where {
  const match = OUR_MAGIC.exec(FIRST_LINE.exec(source)?.[1] ?? '');
  if (!match) {
    return null;
  }
  const [, name, rest] = match;
  const ranks = name === 'rank' ? rest : (RANKS_OPTION.exec(rest)?.[1] ?? '');
  const bare = ranks.trim().replace(/^\[|\]$/g, '');
  return bare || (name === 'rank' ? null : 'all');
}

/** The end of the line that decides it. */
export function headLength(source: string, isMode = false): number {
  return (isMode ? FIRST_CODE : FIRST_LINE).exec(source)?.[0].length ?? 0;
}

/** `Runs on all ranks`, `Runs on rank 0`, `Runs on ranks 0, 2` */
export function sayWhere(where: string): string {
  if (where === 'all') {
    return trans.__('Runs on all ranks');
  }
  const items = where.split(',').map(item => item.trim());
  return trans._n(
    'Runs on rank %2',
    'Runs on ranks %2',
    items.length === 1 && /^-?\d+$/.test(where) ? 1 : 2,
    items.join(', ')
  );
}

/** The ranks of a list such as `0,2-3`; null if it depends on the size of the pool. */
export function listedRanks(where: string): number[] | null {
  const ranks = new Set<number>();
  for (const item of where.split(',').map(item => item.trim())) {
    if (!LISTED.test(item)) {
      return null;
    }
    const [first, last = first] = item.split('-').map(Number);
    for (let rank = first; rank <= last && ranks.size < MOST; rank++) {
      ranks.add(rank);
    }
  }
  return [...ranks];
}

/** The change that adds or removes the magic: what replaces the source up to `end`. */
export function toggled(source: string): { end: number; start: string } {
  return whereRuns(source) === null
    ? { end: 0, start: `${MAGIC}\n` }
    : { end: Math.min(headLength(source) + 1, source.length), start: '' };
}
