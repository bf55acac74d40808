import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { MessageLoop } from '@lumino/messaging';

import { hasRanks, poolOf } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { insertCode } from '../../ui/codeCells';
import { askKill } from '../../ui/dialogs';
import { addToPalette } from '../../ui/palette';
import { showTexts } from '../../ui/textDialog';
import { loadLog, loadStacks } from '../../words/rankTexts';
import { findRank } from '../commands';
import type { IFound } from '../commands';
import { debugRank, stepOneRank, stepsOneRank } from './debugRank';

/** Commands for single ranks. */
export const ranksPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:ranks',
  description: 'Adds commands for single ranks: kill, stack, log, own cells.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook],
  optional: [INotebookTracker, ICommandPalette],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    model: IPoolsModel,
    current: ICurrentNotebook,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null
  ): void => {
    const find = (args: Args) => findRank(args, model, current);
    // Without a rank there is nothing that these could be about.
    const isVisible = ({ rank }: Args) => rank !== undefined;

    commands.addCommand(CommandIDs.killRank, {
      label: trans.__('Kill…'),
      caption: trans.__(
        'End this rank immediately; the other ranks keep running.'
      ),
      isVisible,
      isEnabled: args => isAlive(find(args)),
      execute: async args => {
        const { pool, rank } = find(args);
        if (pool && rank && (await askKill(rank.rank))) {
          await model.kill(pool.id, [rank.rank]);
        }
      }
    });
    commands.addCommand(CommandIDs.debugRank, {
      label: trans.__('Debug'),
      caption: trans.__(
        'Show this rank in the debugger; if it runs a cell, it stops there.'
      ),
      isVisible,
      isEnabled: args => {
        const { pool, rank } = find(args);
        return (
          rank?.state === 'busy' && notebookOf(pool, model, tracker) !== null
        );
      },
      execute: async args => {
        const { pool, rank } = find(args);
        const panel = notebookOf(pool, model, tracker);
        if (rank && panel) {
          shell.activateById(panel.id);
          await debugRank(panel, rank.rank, commands);
        }
      }
    });
    commands.addCommand(CommandIDs.stepOneRank, {
      label: trans.__('Step Only the Shown Rank'),
      caption: trans.__(
        'In the debugger, Continue and the steps apply to the rank that is shown, not to all that are stopped.'
      ),
      isVisible,
      isEnabled: args => notebookOf(find(args).pool, model, tracker) !== null,
      isToggled: args => {
        const panel = notebookOf(find(args).pool, model, tracker);
        return panel !== null && stepsOneRank(panel);
      },
      execute: async args => {
        const panel = notebookOf(find(args).pool, model, tracker);
        if (panel) {
          await stepOneRank(panel, !stepsOneRank(panel));
          commands.notifyCommandChanged(CommandIDs.stepOneRank);
        }
      }
    });
    commands.addCommand(CommandIDs.showStacks, {
      label: ({ rank }) =>
        rank === undefined ? trans.__('Show Stacks') : trans.__('Show Stack'),
      caption: trans.__('Show where the ranks are in their code.'),
      isEnabled: args =>
        args.rank === undefined
          ? find(args).pool?.state === 'RUNNING'
          : isAlive(find(args)),
      execute: async args => {
        const { pool, rank } = find(args);
        if (!pool) {
          return;
        }
        const ranks = rank
          ? [rank]
          : pool.ranks.filter(({ state }) => state !== 'dead');
        await showTexts(
          rank
            ? trans.__('Stack of rank %1', rank.rank)
            : trans.__('Stacks of all ranks'),
          () =>
            loadStacks(
              model,
              pool,
              ranks.map(({ rank }) => rank)
            )
        );
      }
    });
    commands.addCommand(CommandIDs.showLog, {
      label: trans.__('Show Log'),
      caption: trans.__('Show the last lines that this rank wrote to stderr.'),
      isVisible,
      isEnabled: args => Boolean(find(args).rank),
      execute: async args => {
        const { pool, rank } = find(args);
        if (pool && rank) {
          await showTexts(trans.__('Log of rank %1', rank.rank), () =>
            loadLog(model, pool, rank.rank)
          );
        }
      }
    });
    commands.addCommand(CommandIDs.runOnRank, {
      label: trans.__('Run Code Here'),
      caption: trans.__('Insert a cell that runs on this rank only.'),
      isVisible,
      isEnabled: args => {
        const found = find(args);
        // The cell resumes a pool that is parked.
        return (
          found.pool !== null &&
          hasRanks(found.pool) &&
          found.rank !== null &&
          found.rank.state !== 'dead' &&
          notebookOf(found.pool, model, tracker) !== null
        );
      },
      execute: async args => {
        const { pool, rank } = find(args);
        const panel = notebookOf(pool, model, tracker);
        if (rank && panel) {
          shell.activateById(panel.id);
          // A notebook that becomes the active one leaves the edit mode.
          MessageLoop.flush();
          insertCode(panel, `%%rank [${rank.rank}]\n`);
          await writeAtEnd(panel);
        }
      }
    });

    const ours = [
      CommandIDs.killRank,
      CommandIDs.debugRank,
      CommandIDs.stepOneRank,
      CommandIDs.showStacks,
      CommandIDs.showLog,
      CommandIDs.runOnRank
    ];
    current.changed.connect(() =>
      ours.forEach(id => commands.notifyCommandChanged(id))
    );
    addToPalette(palette, [CommandIDs.showStacks]);
  }
};

type Args = ReadonlyPartialJSONObject;

function isAlive({ pool, rank }: IFound): boolean {
  return pool?.state === 'RUNNING' && rank !== null && rank.state !== 'dead';
}

/** An open notebook that uses the pool, the current one first. */
function notebookOf(
  pool: IPool | null,
  { pools }: IPoolsModel,
  tracker: INotebookTracker | null
): NotebookPanel | null {
  const uses = ({ sessionContext }: NotebookPanel) =>
    poolOf(sessionContext.session?.kernel?.id, pools.values())?.id === pool?.id;
  const current = tracker?.currentWidget;
  return pool === null
    ? null
    : current && uses(current)
      ? current
      : (tracker?.find(uses) ?? null);
}

/** Put the cursor to the last line of the active cell, as soon as that has an editor. */
async function writeAtEnd({ content }: NotebookPanel): Promise<void> {
  const cell = content.activeCell;
  await cell?.ready;
  if (cell?.editor) {
    content.mode = 'edit';
    cell.editor.setCursorPosition({
      line: cell.editor.lineCount - 1,
      column: 0
    });
    cell.editor.focus();
  }
}
