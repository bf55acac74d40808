import type { IVerdict } from '../model/gpuContract';
import { trans } from '../model/trans';
import type { IAbsence, ILongWait, INotedWait, IWait } from '../model/waiting';
import { joinSentences, listRanks } from './format';

/** One sentence, and what there is to know beside it. */
interface IWaitWords {
  head: string;
  rest: string;
}

/** The same, in the server's words if it knows more. */
export function sayNotedWait({ verdict, wait }: INotedWait): IWaitWords {
  if (verdict) {
    const { kind, sentence, hint } = verdict;
    const head = headOf(verdict);
    return {
      head,
      rest:
        kind === 'contradiction'
          ? joinSentences([sentence, hint])
          : head === sentence
            ? ''
            : sentence
    };
  }
  return wait ? sayLongWait(wait) : { head: '', rest: '' };
}

/** The verdict in few words, as a sentence. */
function headOf(verdict: IVerdict): string {
  const { kind, ranks, op } = verdict;
  const list = listRanks(ranks);
  switch (kind) {
    case 'never_joined':
      return trans._n(
        'Rank %2 never joined %3.',
        'Ranks %2 never joined %3.',
        ranks.length,
        list,
        op
      );
    case 'not_joined_yet':
      return trans._n(
        'Rank %2 has not joined %3 yet.',
        'Ranks %2 have not joined %3 yet.',
        ranks.length,
        list,
        op
      );
    case 'mismatch':
      return trans.__('The ranks disagree.');
    case 'order':
      return trans.__('The ranks wait for each other.');
    case 'message':
      return trans._n(
        'Rank %2 does not take part in a message.',
        'Ranks %2 do not take part in a message.',
        ranks.length,
        list
      );
    case 'contradiction':
      return trans.__('It is not known why the ranks wait.');
    default:
      return verdict.sentence;
  }
}

/**
 * What keeps ranks waiting: `Rank 3 never joined all_reduce #412.`, `Rank 3 is idle. Ranks 0–2 wait at cell [7], line 12.`
 */
export function sayLongWait(wait: ILongWait): IWaitWords {
  const { waits, absences } = wait;
  const [longest, ...others] = waits;
  if (absences.length === 0) {
    return {
      head: trans.__('The ranks wait in different collectives.'),
      rest: joinSentences(waits.map(wait => sayWaitIn(wait)))
    };
  }
  const { ranks, mayCome } = blamed(wait);
  const list = listRanks(ranks);
  const call = nameCall(longest);
  return {
    head: mayCome
      ? trans._n(
          'Rank %2 has not joined %3 yet.',
          'Ranks %2 have not joined %3 yet.',
          ranks.length,
          list,
          call
        )
      : trans._n(
          'Rank %2 never joined %3.',
          'Ranks %2 never joined %3.',
          ranks.length,
          list,
          call
        ),
    rest: joinSentences([
      ...absences.map(absence => sayAbsence(absence)),
      ...others.map(wait => sayWaitIn(wait)),
      sayWaitAt(longest)
    ])
  };
}

/** Where there is little room: `rank 3 never joined all_reduce #412`. */
export function sayWaitShortly(wait: ILongWait): string {
  if (wait.absences.length === 0) {
    return trans.__('ranks wait in different collectives');
  }
  const { ranks, mayCome } = blamed(wait);
  const list = listRanks(ranks);
  const call = nameCall(wait.waits[0]);
  return mayCome
    ? trans._n(
        'rank %2 has not joined %3 yet',
        'ranks %2 have not joined %3 yet',
        ranks.length,
        list,
        call
      )
    : trans._n(
        'rank %2 never joined %3',
        'ranks %2 never joined %3',
        ranks.length,
        list,
        call
      );
}

/** Where there is little room, in the server's words if it knows more. */
export function sayNotedWaitShortly({ verdict, wait }: INotedWait): string {
  if (wait) {
    return sayWaitShortly(wait);
  }
  if (verdict?.kind === 'contradiction') {
    return trans.__('ranks wait for an unknown reason');
  }
  return verdict && verdict.ranks.length > 0
    ? trans._n(
        'waits for rank %2',
        'waits for ranks %2',
        verdict.ranks.length,
        listRanks(verdict.ranks)
      )
    : trans.__('ranks wait for each other');
}

/** Whom the longest wait is for. Ranks that are busy may still come: others are to blame, if there are any. */
function blamed({ waits, absences }: ILongWait): {
  ranks: number[];
  mayCome: boolean;
} {
  const gone = absences.filter(({ state }) => state !== 'busy');
  const others = [...gone, ...waits.slice(1)];
  const mayCome = others.length === 0;
  return {
    ranks: (mayCome ? absences : others).flatMap(({ ranks }) => ranks),
    mayCome
  };
}

function sayAbsence({ state, ranks }: IAbsence): string {
  const list = listRanks(ranks);
  const count = ranks.length;
  switch (state) {
    case 'idle':
      return trans._n('Rank %2 is idle.', 'Ranks %2 are idle.', count, list);
    case 'busy':
      return trans._n(
        'Rank %2 is busy elsewhere.',
        'Ranks %2 are busy elsewhere.',
        count,
        list
      );
    case 'dead':
      return trans._n('Rank %2 is dead.', 'Ranks %2 are dead.', count, list);
    case 'starting':
      return trans._n(
        'Rank %2 is starting.',
        'Ranks %2 are starting.',
        count,
        list
      );
    case 'silent':
      return trans._n(
        'Rank %2 does not respond.',
        'Ranks %2 do not respond.',
        count,
        list
      );
  }
}

/** `Ranks 0–2 wait at cell [7], line 12.` */
function sayWaitAt({ ranks, cell, line }: IWait): string {
  const list = listRanks(ranks);
  const count = ranks.length;
  if (cell !== null && line !== null) {
    return trans._n(
      'Rank %2 waits at cell [%3], line %4.',
      'Ranks %2 wait at cell [%3], line %4.',
      count,
      list,
      cell,
      line
    );
  }
  if (cell !== null) {
    return trans._n(
      'Rank %2 waits in cell [%3].',
      'Ranks %2 wait in cell [%3].',
      count,
      list,
      cell
    );
  }
  return line === null
    ? trans._n('Rank %2 waits.', 'Ranks %2 wait.', count, list)
    : trans._n(
        'Rank %2 waits at line %3.',
        'Ranks %2 wait at line %3.',
        count,
        list,
        line
      );
}

/** `Ranks 0–2 wait in all_reduce at cell [7], line 12.` */
function sayWaitIn(wait: IWait): string {
  const { ranks, cell, line } = wait;
  const list = listRanks(ranks);
  const call = nameCall(wait);
  const count = ranks.length;
  if (cell !== null && line !== null) {
    return trans._n(
      'Rank %2 waits in %3 at cell [%4], line %5.',
      'Ranks %2 wait in %3 at cell [%4], line %5.',
      count,
      list,
      call,
      cell,
      line
    );
  }
  if (cell !== null) {
    return trans._n(
      'Rank %2 waits in %3 in cell [%4].',
      'Ranks %2 wait in %3 in cell [%4].',
      count,
      list,
      call,
      cell
    );
  }
  return line === null
    ? trans._n(
        'Rank %2 waits in %3.',
        'Ranks %2 wait in %3.',
        count,
        list,
        call
      )
    : trans._n(
        'Rank %2 waits in %3 at line %4.',
        'Ranks %2 wait in %3 at line %4.',
        count,
        list,
        call,
        line
      );
}

/** `all_reduce #412`, as torch counts them too. */
function nameCall({ call, calls }: IWait): string {
  return calls === null ? call : `${call} #${calls}`;
}
