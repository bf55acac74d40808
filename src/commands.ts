import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Dialog, ICommandPalette, showDialog } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { deadRanks } from './model/contract';
import type { IPool, IStartChoice } from './model/contract';
import { IStartModel } from './start/model';
import { CommandIDs, IPoolsModel, TRANSLATION_DOMAIN } from './tokens';

/**
 * Everything the buttons do, as commands for the palette, menus and shortcuts.
 */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:commands',
  description: 'Adds commands that start, stop and mend pools of ranks.',
  autoStart: true,
  requires: [IPoolsModel, IStartModel, ITranslator],
  optional: [ICommandPalette],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    start: IStartModel,
    translator: ITranslator,
    palette: ICommandPalette | null
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
    // The panel's buttons name the pool that they stand beside: it may be another notebook's.
    const poolOf = (args: ReadonlyPartialJSONObject) =>
      typeof args.pool === 'string'
        ? (model.pools.get(args.pool) ?? null)
        : model.pool;
    const isRunning = (args: ReadonlyPartialJSONObject) =>
      poolOf(args)?.state === 'RUNNING';

    commands.addCommand(CommandIDs.startPool, {
      label: ({ ranks }) =>
        typeof ranks === 'number'
          ? trans._n('Start %1 Rank', 'Start %1 Ranks', ranks)
          : trans.__('Start Ranks'),
      caption: trans.__('Start a pool of ranks for the current notebook.'),
      isEnabled: () =>
        model.connection.state === 'live' &&
        Boolean(model.notebook?.kernelId) &&
        !model.isPending &&
        !isAlive(model.pool),
      execute: async ({ ranks, choice }) => {
        const path = model.notebook?.path ?? '';
        await model.start(
          typeof ranks === 'number'
            ? { num_ranks: ranks }
            : ((choice as IStartChoice | undefined) ??
                (await start.choice(path, model.defaultRanks)))
        );
      }
    });
    commands.addCommand(CommandIDs.stopPool, {
      label: trans.__('Stop Ranks…'),
      caption: trans.__('Stop the pool of the current notebook.'),
      isEnabled: args => {
        const pool = poolOf(args);
        return isAlive(pool) && pool?.state !== 'COMPLETING';
      },
      execute: async args => {
        const pool = poolOf(args);
        if (pool && (await mayLose(pool, 'stop', trans))) {
          await model.stop(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.interruptRanks, {
      label: trans.__('Interrupt Ranks'),
      caption: trans.__('Stop the running cell on all ranks.'),
      isEnabled: isRunning,
      execute: async args => {
        const pool = poolOf(args);
        if (pool) {
          await model.interrupt(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.restartRanks, {
      label: ({ dead }) =>
        dead ? trans.__('Replace Dead Ranks') : trans.__('Restart Ranks…'),
      caption: trans.__('Replace all ranks of the current notebook.'),
      isEnabled: isRunning,
      execute: async args => {
        const pool = poolOf(args);
        if (pool && args.dead) {
          await model.restart(
            pool.id,
            deadRanks(pool).map(({ rank }) => rank)
          );
        } else if (pool && (await mayLose(pool, 'restart', trans))) {
          await model.restart(pool.id);
        }
      }
    });

    model.changed.connect(() => {
      for (const id of [
        CommandIDs.startPool,
        CommandIDs.stopPool,
        CommandIDs.interruptRanks,
        CommandIDs.restartRanks
      ]) {
        commands.notifyCommandChanged(id);
      }
    });
    for (const command of Object.values(CommandIDs)) {
      palette?.addItem({
        command,
        category: trans.__('Distributed'),
        args: { isPalette: true }
      });
    }
  }
};

function isAlive(pool: IPool | null): boolean {
  return (
    pool !== null && !['CANCELLED', 'FAILED', 'COMPLETED'].includes(pool.state)
  );
}

/** Asks only when there are variables to lose. */
async function mayLose(
  pool: IPool,
  action: 'stop' | 'restart',
  trans: TranslationBundle
): Promise<boolean> {
  if (pool.state !== 'RUNNING') {
    return true;
  }
  const isStop = action === 'stop';
  const { button } = await showDialog({
    title: isStop
      ? trans.__('Stop all ranks?')
      : trans.__('Restart all ranks?'),
    body: trans._n(
      'The variables on %1 rank will be lost.',
      'The variables on all %1 ranks will be lost.',
      pool.world_size
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({
        label: isStop ? trans.__('Stop') : trans.__('Restart')
      })
    ]
  });
  return button.accept;
}
