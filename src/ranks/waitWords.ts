import type { TranslationBundle } from '@jupyterlab/translation';

import type { IAbsence, ILongWait, IWait } from '../model/waiting';
import { formatRanks } from '../panel/format';

/** One sentence, and what there is to know beside it. */
interface IWaitWords {
  head: string;
  rest: string;
}

/**
 * What keeps ranks waiting: `Rank 3 never joined all_reduce.`, `It is idle; ranks 0–2 wait at cell [7] line 12.`
 */
export function sayLongWait(
  { waits, absences }: ILongWait,
  trans: TranslationBundle
): IWaitWords {
  const [longest, ...others] = waits;
  if (absences.length === 0) {
    return {
      head: trans.__('The ranks wait in different collectives.'),
      rest: `${waits.map(wait => sayWaitIn(wait, trans)).join('; ')}.`
    };
  }
  const away = [...absences, ...others].flatMap(({ ranks }) => ranks);
  const isLate = absences.every(({ state }) => state === 'busy');
  return {
    head: isLate
      ? trans._n(
          'Rank %2 has not joined %3 yet.',
          'Ranks %2 have not joined %3 yet.',
          away.length,
          formatRanks(away),
          longest.call
        )
      : trans._n(
          'Rank %2 never joined %3.',
          'Ranks %2 never joined %3.',
          away.length,
          formatRanks(away),
          longest.call
        ),
    rest: `${sayWhereabouts(absences, others, trans)}; ${sayWaitAt(longest, trans)}.`
  };
}

/** `It is idle`; of several that differ `Rank 2 is idle, rank 3 is dead`. */
function sayWhereabouts(
  absences: IAbsence[],
  others: IWait[],
  trans: TranslationBundle
): string {
  if (absences.length === 1 && others.length === 0) {
    const [{ state, ranks }] = absences;
    const it = trans._n('It', 'They', ranks.length);
    return sayIs(it, state, ranks.length, trans);
  }
  const phrases = [
    ...absences.map(({ state, ranks }) =>
      sayIs(sayRanks(ranks, trans), state, ranks.length, trans)
    ),
    ...others.map(wait => sayWaitIn(wait, trans))
  ];
  const [first, ...more] = phrases;
  return [first[0].toUpperCase() + first.slice(1), ...more].join(', ');
}

function sayIs(
  who: string,
  state: IAbsence['state'],
  count: number,
  trans: TranslationBundle
): string {
  switch (state) {
    case 'idle':
      return trans._n('%2 is idle', '%2 are idle', count, who);
    case 'busy':
      return trans._n(
        '%2 is busy elsewhere',
        '%2 are busy elsewhere',
        count,
        who
      );
    case 'dead':
      return trans._n('%2 is dead', '%2 are dead', count, who);
    case 'starting':
      return trans._n('%2 starts', '%2 start', count, who);
    case 'silent':
      return trans._n('%2 does not answer', '%2 do not answer', count, who);
  }
}

/** `ranks 0–2 wait at cell [7] line 12`. */
function sayWaitAt(wait: IWait, trans: TranslationBundle): string {
  const who = sayRanks(wait.ranks, trans);
  const where = sayPlace(wait, trans);
  const waits = trans._n('%2 waits', '%2 wait', wait.ranks.length, who);
  return where ? `${waits} ${where}` : waits;
}

/** `ranks 0–2 wait in all_reduce at cell [7] line 12`. */
function sayWaitIn(wait: IWait, trans: TranslationBundle): string {
  const where = sayPlace(wait, trans);
  const waits = trans._n(
    '%2 waits in %3',
    '%2 wait in %3',
    wait.ranks.length,
    sayRanks(wait.ranks, trans),
    wait.call
  );
  return where ? `${waits} ${where}` : waits;
}

function sayPlace({ cell, line }: IWait, trans: TranslationBundle): string {
  if (cell !== null && line !== null) {
    return trans.__('at cell [%1] line %2', cell, line);
  }
  if (cell !== null) {
    return trans.__('in cell [%1]', cell);
  }
  return line === null ? '' : trans.__('at line %1', line);
}

function sayRanks(ranks: number[], trans: TranslationBundle): string {
  return trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks));
}
