import {
  Dialog,
  InputDialog,
  showDialog,
  showErrorMessage
} from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';

import { trans } from '../model/trans';
import { listRanks } from '../words/format';

/** Whether a rank that lives should be ended, and its variables with it. */
export function askKill(rank: number): Promise<boolean> {
  return ask(
    trans.__('Kill rank %1?', rank),
    trans.__(
      'Its variables will be lost, and collectives will hang until it is restarted.'
    ),
    trans.__('Kill')
  );
}

/** Whether ranks that live should be replaced by new ones. */
export function askRestart(ranks: number[]): Promise<boolean> {
  return ask(
    trans._n(
      'Restart rank %2?',
      'Restart ranks %2?',
      ranks.length,
      listRanks(ranks)
    ),
    trans._n(
      'Its variables will be lost; the other ranks keep theirs.',
      'Their variables will be lost; the other ranks keep theirs.',
      ranks.length
    ),
    trans.__('Restart')
  );
}

/** How many ranks a pool should have, and whether to wait for GPUs; null if it is to stay as it is. */
export async function askSize(
  ranks: number
): Promise<{ ranks: number; wait: boolean } | null> {
  const { button, value, isChecked } = await InputDialog.getNumber({
    title: trans.__('Resize the pool'),
    label: trans.__(
      'Number of ranks. New ranks have no variables; if there are fewer, the last ranks end.'
    ),
    value: ranks,
    okLabel: trans.__('Resize'),
    checkbox: { label: trans.__('Wait for GPUs'), checked: false }
  });
  return button.accept && value !== null && value !== ranks
    ? { ranks: value, wait: isChecked === true }
    : null;
}

/** Whether a pool should go on without nodes that are lost. */
export function askToLeave(nodes: string[]): Promise<boolean> {
  return ask(
    trans._n(
      'Go on without node %2?',
      'Go on without nodes %2?',
      nodes.length,
      nodes.join(', ')
    ),
    trans._n(
      'The ranks on the other nodes restart with new numbers. Their variables are lost. To use the lost node again, start a new pool.',
      'The ranks on the other nodes restart with new numbers. Their variables are lost. To use the lost nodes again, start a new pool.',
      nodes.length
    ),
    trans.__('Go On')
  );
}

/** Say what will be lost, and ask whether to go on. */
export async function ask(
  title: string,
  body: string,
  label: string,
  refusal = trans.__('Cancel')
): Promise<boolean> {
  const { button } = await showDialog({
    title,
    body,
    buttons: [
      Dialog.cancelButton({ label: refusal }),
      Dialog.warnButton({ label })
    ]
  });
  return button.accept;
}

/** Open the notebook of a pool; say so if it is no longer there, or cannot be reached from this server. */
export async function openNotebook(
  path: string,
  commands: CommandRegistry
): Promise<void> {
  try {
    await commands.execute('docmanager:open', { path });
  } catch (error) {
    await showErrorMessage(
      trans.__('“%1” cannot be opened', path),
      error instanceof Error ? error : String(error)
    );
  }
}

/** Ask whether a pool is to give its GPUs to others. */
export function askToPark(): Promise<boolean> {
  return ask(
    trans.__('Park the pool?'),
    trans.__(
      'Others can then use its GPUs. The ranks keep their variables; what is on the GPUs moves to the memory of this machine. The next cell on ranks waits for the same GPUs. Parking has only been tested with a simulated driver, never on a GPU: save what you cannot compute again.'
    ),
    trans.__('Park')
  );
}
