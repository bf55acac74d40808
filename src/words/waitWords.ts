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
function headOf({ kind, ranks, op, sentence }: IVerdict): string {
  switch (kind) {
    case 'never_joined':
      return sayMissing(ranks, op, false);
    case 'not_joined_yet':
      return sayMissing(ranks, op, true);
    case 'mismatch':
      return trans.__('The ranks disagree.');
    case 'order':
      return trans.__('The ranks wait for each other.');
    case 'message':
      return trans._n(
        'Rank %2 does not take part in a message.',
        'Ranks %2 do not take part in a message.',
        ranks.length,
        listRanks(ranks)
      );
    case 'contradiction':
      return trans.__('It is not known why the ranks wait.');
    default:
      return sentence;
  }
}

function sayMissing(
  ranks: number[],
  call: string | null,
  mayCome: boolean
): string {
  const args = [ranks.length, listRanks(ranks), call] as const;
  return mayCome
    ? trans._n(
        'Rank %2 has not joined %3 yet.',
        'Ranks %2 have not joined %3 yet.',
        ...args
      )
    : trans._n(
        'Rank %2 never joined %3.',
        'Ranks %2 never joined %3.',
        ...args
      );
}

/** Why ranks wait: `Rank 3 never joined all_reduce #412. Rank 3 is idle. Ranks 0–2 wait at cell [7], line 12.` */
export function sayLongWait(wait: ILongWait): IWaitWords {
  const { waits, absences } = wait;
  const [longest, ...others] = waits;
  if (absences.length === 0) {
    return {
      head: trans.__('The ranks wait in different collectives.'),
      rest: joinSentences(waits.map(sayWaitIn))
    };
  }
  const { ranks, mayCome } = blamed(wait);
  return {
    head: sayMissing(ranks, nameCall(longest), mayCome),
    rest: joinSentences([
      ...absences.map(sayAbsence),
      ...others.map(sayWaitIn),
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
  const call = nameCall(wait.waits[0]);
  const args = [ranks.length, listRanks(ranks), call] as const;
  return mayCome
    ? trans._n(
        'rank %2 has not joined %3 yet',
        'ranks %2 have not joined %3 yet',
        ...args
      )
    : trans._n('rank %2 never joined %3', 'ranks %2 never joined %3', ...args);
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

/** What is told of the ranks that others wait for, or that differ, by rank: `did not join all_reduce #412`. */
export function sayMarks({
  verdict,
  wait
}: INotedWait): ReadonlyMap<number, string> {
  const { ranks, mark } = verdict
    ? { ranks: verdict.ranks, mark: markOf(verdict) }
    : wait?.absences.length
      ? markAbsent(wait)
      : { ranks: [], mark: null };
  return new Map(mark === null ? [] : ranks.map(rank => [rank, mark]));
}

function markAbsent(wait: ILongWait): { ranks: number[]; mark: string } {
  const { ranks, mayCome } = blamed(wait);
  return { ranks, mark: sayNotJoined(nameCall(wait.waits[0]), mayCome) };
}

function markOf({ kind, op }: IVerdict): string | null {
  switch (kind) {
    case 'never_joined':
      return sayNotJoined(op, false);
    case 'not_joined_yet':
      return sayNotJoined(op, true);
    case 'mismatch':
      return trans.__('differs from the other ranks');
    case 'message':
      return trans.__('does not take part');
    default:
      return null;
  }
}

function sayNotJoined(call: string | null, mayCome: boolean): string {
  return mayCome
    ? trans.__('has not joined %1 yet', call)
    : trans.__('did not join %1', call);
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
  const args = [ranks.length, listRanks(ranks)] as const;
  switch (state) {
    case 'idle':
      return trans._n('Rank %2 is idle.', 'Ranks %2 are idle.', ...args);
    case 'busy':
      return trans._n(
        'Rank %2 is busy elsewhere.',
        'Ranks %2 are busy elsewhere.',
        ...args
      );
    case 'dead':
      return trans._n('Rank %2 is dead.', 'Ranks %2 are dead.', ...args);
    case 'starting':
      return trans._n(
        'Rank %2 is starting.',
        'Ranks %2 are starting.',
        ...args
      );
    case 'silent':
      return trans._n(
        'Rank %2 does not respond.',
        'Ranks %2 do not respond.',
        ...args
      );
  }
}

/** `Ranks 0–2 wait at cell [7], line 12.` */
function sayWaitAt({ ranks, cell, line }: IWait): string {
  const args = [ranks.length, listRanks(ranks), cell, line] as const;
  if (cell === null) {
    return trans._n('Rank %2 waits.', 'Ranks %2 wait.', ...args);
  }
  return line === null
    ? trans._n(
        'Rank %2 waits in cell [%3].',
        'Ranks %2 wait in cell [%3].',
        ...args
      )
    : trans._n(
        'Rank %2 waits at cell [%3], line %4.',
        'Ranks %2 wait at cell [%3], line %4.',
        ...args
      );
}

/** `Ranks 0–2 wait in all_reduce at cell [7], line 12.` */
function sayWaitIn(wait: IWait): string {
  const { ranks, cell, line } = wait;
  const list = listRanks(ranks);
  const args = [ranks.length, list, nameCall(wait), cell, line] as const;
  return cell === null || line === null
    ? trans._n('Rank %2 waits in %3.', 'Ranks %2 wait in %3.', ...args)
    : trans._n(
        'Rank %2 waits in %3 at cell [%4], line %5.',
        'Ranks %2 wait in %3 at cell [%4], line %5.',
        ...args
      );
}

/** `all_reduce #412`, as torch counts them too. */
function nameCall({ call, calls }: IWait): string {
  return calls === null ? call : `${call} #${calls}`;
}
