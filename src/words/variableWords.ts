import { trans } from '../model/trans';
import type {
  IVariable,
  IVariableForm,
  IVariables
} from '../model/variablesContract';
import { joinFacts, listRanks } from './format';

/** How the content of a variable compares, in a word or two, and what that means. */
export function sayContent({ content, forms }: IVariable): {
  word: string;
  meaning: string;
} {
  switch (content) {
    case 'equal':
      return {
        word: trans.__('equal'),
        meaning: trans.__('The content is the same on all ranks that have it.')
      };
    case 'differs':
      return {
        word: trans.__('differs'),
        meaning: trans.__('The content is not the same on all ranks.')
      };
    case 'sharded':
      return {
        word: trans.__('sharded'),
        meaning: trans.__(
          'Ranks hold different parts; copies of a part are equal.'
        )
      };
    case 'unchecked':
      return {
        word: trans.__('not compared'),
        meaning: trans.__('It is large: press Check to compare it.')
      };
    case 'single':
      return {
        word: trans.__('rank %1', forms[0].ranks[0]),
        meaning: trans.__('Only this one of the ranks that responded has it.')
      };
    case 'incomparable':
      return {
        word: '–',
        meaning: trans.__('There is nothing to compare it with.')
      };
  }
}

/** What a variable is: `Tensor (449, 64) · float32 · cuda:0`. */
export function sayForm(form: IVariableForm): string {
  const { type, items, dtypes } = form;
  return joinFacts([
    joinWords([type, sayShape(form)]),
    items !== null && trans._n('%1 item', '%1 items', items),
    dtypes.join(', '),
    // Of parts, it is said with each.
    !form.shard && sayDevices(form)
  ]);
}

/** The part of a variable that ranks hold: `Rank 0: [0:2, 0:8] · cuda:0`. */
export function sayShard(form: IVariableForm): string {
  return sayOf(form, joinFacts([form.shard, sayDevices(form)]));
}

/** What is said of some ranks only. */
export function sayOf({ ranks }: IVariableForm, what: string): string {
  return trans._n(
    'Rank %2: %3',
    'Ranks %2: %3',
    ranks.length,
    listRanks(ranks),
    what
  );
}

/** Why there is nothing to be seen of some ranks. */
export function sayAbsent({ busy, silent, dead }: IVariables): string[] {
  return [
    busy.length > 0 ? sayBusy(busy) : '',
    silent.length > 0
      ? trans._n(
          'Rank %2 does not respond. It may be stopped (SIGSTOP, a debugger), or in C code that holds the GIL.',
          'Ranks %2 do not respond. They may be stopped (SIGSTOP, a debugger), or in C code that holds the GIL.',
          silent.length,
          listRanks(silent)
        )
      : '',
    dead.length > 0
      ? trans._n(
          'Rank %2 is dead.',
          'Ranks %2 are dead.',
          dead.length,
          listRanks(dead)
        )
      : ''
  ].filter(Boolean);
}

export function sayBusy(ranks: number[]): string {
  return trans._n(
    'Rank %2 runs a cell. The list is updated when it has finished.',
    'Ranks %2 run a cell. The list is updated when they have finished.',
    ranks.length,
    listRanks(ranks)
  );
}

function sayShape({ shape }: IVariableForm): string {
  return shape ? `(${shape.join(', ')})` : '';
}

function sayDevices({ devices }: IVariableForm): string {
  return devices.length > 2
    ? `${devices[0]} … ${devices[devices.length - 1]}`
    : devices.join(', ');
}

function joinWords(words: string[]): string {
  return words.filter(Boolean).join(' ');
}
