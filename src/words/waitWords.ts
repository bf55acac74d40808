import type { TranslationBundle } from '@jupyterlab/translation';

import type { IAbsence, ILongWait, IWait } from '../model/waiting';
import { sayRanks } from './format';

/** One sentence, and what there is to know beside it. */
interface IWaitWords {
  head: string;
  rest: string;
}

/**
 * What keeps ranks waiting: `Rank 3 never joined all_reduce #412.`, `It is idle; ranks 0–2 wait at cell [7] line 12.`
 */
export function sayLongWait(
  { waits, absences }: ILongWait,
  trans: TranslationBundle
): IWaitWords {
  const [longest, ...others] = waits;
  if (absences.length === 0) {
    return {
      head: trans.__('The ranks wait in different collectives.'),
      rest: `${capital(waits.map(wait => sayWaitIn(wait, trans)).join('; '))}.`
    };
  }
  // Ranks that are busy elsewhere may still come: others are to blame, if there are any.
  const gone = absences.filter(({ state }) => state !== 'busy');
  const blamed = gone.length || others.length ? gone : absences;
  const ranks = [...blamed, ...others].flatMap(({ ranks }) => ranks);
  const away = [
    ...gone,
    ...others,
    ...absences.filter(({ state }) => state === 'busy')
  ];
  return {
    head:
      blamed === absences && gone.length === 0
        ? trans._n(
            '%2 has not joined %3 yet.',
            '%2 have not joined %3 yet.',
            ranks.length,
            capital(sayRanks(ranks, trans)),
            sayCall(longest, trans)
          )
        : trans.__(
            '%1 never joined %2.',
            capital(sayRanks(ranks, trans)),
            sayCall(longest, trans)
          ),
    rest: `${sayWhereabouts(away, trans)}; ${sayWaitAt(longest, trans)}.`
  };
}

/** Where there is little room: `rank 3 never joined all_reduce #412`. */
export function sayWaitShortly(
  wait: ILongWait,
  trans: TranslationBundle
): string {
  const { head } = sayLongWait(wait, trans);
  return head[0].toLowerCase() + head.slice(1).replace(/\.$/, '');
}

/** `It is idle`; of several that differ `Rank 2 is idle, rank 3 is dead`. */
function sayWhereabouts(
  away: (IAbsence | IWait)[],
  trans: TranslationBundle
): string {
  if (away.length === 1 && 'state' in away[0]) {
    const [{ state, ranks }] = away;
    return sayIs(
      trans._n('It', 'They', ranks.length),
      state,
      ranks.length,
      trans
    );
  }
  const [first, ...more] = away.map(group =>
    'state' in group
      ? sayIs(
          sayRanks(group.ranks, trans),
          group.state,
          group.ranks.length,
          trans
        )
      : sayWaitIn(group, trans)
  );
  return [capital(first), ...more].join(', ');
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
    sayCall(wait, trans)
  );
  return where ? `${waits} ${where}` : waits;
}

/** `all_reduce #412`, as torch counts them too. */
function sayCall({ call, calls }: IWait, trans: TranslationBundle): string {
  return calls === null ? call : trans.__('%1 #%2', call, calls);
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

function capital(words: string): string {
  return words[0].toUpperCase() + words.slice(1);
}
