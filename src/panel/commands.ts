import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { deadRanks, hasRanks, isBusy } from '../model/contract';
import type { IPool, IRank, IStartChoice } from '../model/contract';
import { canPark, canResize, parkStage } from '../model/parking';
import { IStartModel } from '../model/startModel';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { ask, askRestart, askSize, askToLeave, askToPark } from '../ui/dialogs';
import { addToPalette } from '../ui/palette';

/** Everything the buttons do, as commands for the palette, menus and shortcuts. */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:commands',
  description: 'Adds commands that start, stop and repair pools of ranks.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook, IStartModel],
  optional: [ICommandPalette],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    current: ICurrentNotebook,
    start: IStartModel,
    palette: ICommandPalette | null
  ): void => {
    const find = (args: Args) => findRank(args, model, current);
    const poolOf = (args: Args) => find(args).pool;
    const isRunning = (args: Args) => poolOf(args)?.state === 'RUNNING';
    const poolIs = (args: Args, is: (pool: IPool) => boolean) => {
      const pool = poolOf(args);
      return pool !== null && is(pool);
    };
    const stageOf = (args: Args) => {
      const pool = poolOf(args);
      return pool && parkStage(pool);
    };

    /** Kernels whose start options are being loaded. */
    const choosing = new Set<string>();
    const choose = async (path: string, kernelId: string) => {
      choosing.add(kernelId);
      commands.notifyCommandChanged(CommandIDs.startPool);
      try {
        return await start.choice(path, model.defaultRanks);
      } finally {
        choosing.delete(kernelId);
        commands.notifyCommandChanged(CommandIDs.startPool);
      }
    };
    commands.addCommand(CommandIDs.startPool, {
      label: ({ ranks }) =>
        typeof ranks === 'number'
          ? trans._n('Start %1 Rank', 'Start %1 Ranks', ranks)
          : trans.__('Start Ranks'),
      caption: trans.__('Start a pool of ranks for the current notebook.'),
      isEnabled: () =>
        model.connection.state === 'live' &&
        Boolean(current.notebook?.kernelId && current.notebook.isPython) &&
        !choosing.has(current.notebook?.kernelId ?? '') &&
        !current.isPending &&
        !isAlive(current.pool),
      execute: async ({ ranks, choice }) => {
        // The current notebook may change while the options load.
        const { path = '', kernelId = null } = current.notebook ?? {};
        if (!kernelId || choosing.has(kernelId)) {
          return;
        }
        const chosen =
          typeof ranks === 'number'
            ? { num_ranks: ranks }
            : ((choice as IStartChoice | undefined) ??
              (await choose(path, kernelId)));
        if (chosen) {
          await model.start(chosen, kernelId);
        } else {
          // The form there says what is wrong.
          await commands.execute(CommandIDs.openPanel);
        }
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
        if (pool && (await mayLose(pool, 'stop'))) {
          await model.stop(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.interruptRanks, {
      label: args =>
        hasRank(args) ? trans.__('Interrupt') : trans.__('Interrupt Ranks'),
      caption: args =>
        hasRank(args)
          ? trans.__('Stop the running cell on this rank.')
          : trans.__('Stop the running cell on all ranks.'),
      isEnabled: args =>
        isRunning(args) &&
        (hasRank(args)
          ? find(args).rank?.state === 'busy'
          : isBusy(poolOf(args))),
      execute: async args => {
        const { pool, rank } = find(args);
        if (pool && rank) {
          await model.interrupt(pool.id, [rank.rank]);
        } else if (pool && !hasRank(args)) {
          await model.interrupt(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.restartRanks, {
      label: args =>
        args.dead
          ? trans.__('Replace Dead Ranks')
          : hasRank(args)
            ? find(args).rank?.state === 'dead'
              ? trans.__('Restart')
              : trans.__('Restart…')
            : trans.__('Restart Ranks…'),
      caption: args =>
        hasRank(args)
          ? trans.__('Replace this rank with a new one.')
          : trans.__('Replace all ranks of the current notebook.'),
      isEnabled: isRunning,
      execute: async args => {
        const pool = poolOf(args);
        const named = hasRank(args) ? [args.rank] : args.ranks;
        if (!pool) {
          return;
        }
        if (!args.dead && !Array.isArray(named)) {
          if (await mayLose(pool, 'restart')) {
            await model.restart(pool.id);
          }
          return;
        }
        const chosen = (args.dead ? deadRanks(pool) : pool.ranks).filter(
          ({ rank }) => !Array.isArray(named) || named.includes(rank)
        );
        const ranks = chosen.map(({ rank }) => rank);
        const isSafe = chosen.every(({ state }) => state === 'dead');
        if (ranks.length && (isSafe || (await askRestart(ranks)))) {
          await model.restart(pool.id, { ranks });
        }
      }
    });
    commands.addCommand(CommandIDs.resizePool, {
      label: trans.__('Resize Pool…'),
      caption: trans.__('Add ranks, or end the last ones.'),
      isEnabled: args => poolIs(args, canResize),
      execute: async args => {
        const pool = poolOf(args);
        const chosen =
          typeof args.ranks === 'number'
            ? { ranks: args.ranks, wait: false }
            : pool && (await askSize(pool.world_size));
        if (pool && chosen) {
          await model.resize(pool.id, chosen.ranks, chosen.wait);
        }
      }
    });
    commands.addCommand(CommandIDs.parkPool, {
      label: args =>
        stageOf(args) === 'waiting'
          ? trans.__('Stay Parked')
          : trans.__('Park Pool…'),
      caption: args =>
        stageOf(args) === 'waiting'
          ? trans.__('Do not wait for the GPUs any longer.')
          : trans.__(
              'Give the GPUs to others, and keep the variables of the ranks.'
            ),
      isEnabled: args => stageOf(args) === 'waiting' || poolIs(args, canPark),
      execute: async args => {
        const pool = poolOf(args);
        if (pool && (stageOf(args) === 'waiting' || (await askToPark()))) {
          await model.park(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.resumePool, {
      label: trans.__('Resume Pool'),
      caption: trans.__('Bring a parked pool back to its GPUs.'),
      isEnabled: args => stageOf(args) === 'parked',
      execute: async args => {
        const pool = poolOf(args);
        if (pool) {
          await model.resume(pool.id);
        }
      }
    });
    commands.addCommand(CommandIDs.leaveLostNodes, {
      label: trans.__('Go On without Lost Nodes…'),
      caption: trans.__(
        'Restart the ranks on the other nodes and renumber them.'
      ),
      isEnabled: args =>
        isRunning(args) && Boolean(poolOf(args)?.lost_nodes?.length),
      execute: async args => {
        const pool = poolOf(args);
        const lost = pool?.lost_nodes ?? [];
        if (!pool || !(await askToLeave(lost))) {
          return;
        }
        // Ask again if another node was lost meanwhile.
        const nowLost = poolOf(args)?.lost_nodes ?? [];
        if (nowLost.some(node => !lost.includes(node))) {
          await commands.execute(CommandIDs.leaveLostNodes, args);
        } else {
          await model.restart(pool.id, { without_lost_nodes: true });
        }
      }
    });

    const ours = [
      CommandIDs.startPool,
      CommandIDs.stopPool,
      CommandIDs.interruptRanks,
      CommandIDs.restartRanks,
      CommandIDs.resizePool,
      CommandIDs.parkPool,
      CommandIDs.resumePool,
      CommandIDs.leaveLostNodes
    ];
    current.changed.connect(() =>
      ours.forEach(id => commands.notifyCommandChanged(id))
    );
    addToPalette(palette, ours);
  }
};

type Args = ReadonlyPartialJSONObject;

function isAlive(pool: IPool | null): boolean {
  return (
    pool !== null && !['CANCELLED', 'FAILED', 'COMPLETED'].includes(pool.state)
  );
}

/** Whether a command is about one rank, not about all. */
function hasRank({ rank }: Args): boolean {
  return typeof rank === 'number';
}

export interface IFound {
  pool: IPool | null;
  rank: IRank | null;
}

/** The pool that the arguments name, or else the current notebook's; and the rank, if they name one. */
export function findRank(
  { pool: id, rank: number }: Args,
  model: IPoolsModel,
  current: ICurrentNotebook
): IFound {
  const pool =
    typeof id === 'string' ? (model.pools.get(id) ?? null) : current.pool;
  const rank = pool?.ranks.find(({ rank }) => rank === number) ?? null;
  return { pool, rank };
}

/** Asks only if there are variables to lose. */
async function mayLose(
  pool: IPool,
  action: 'stop' | 'restart'
): Promise<boolean> {
  const living = pool.world_size - deadRanks(pool).length;
  if (!hasRanks(pool) || living === 0) {
    return true;
  }
  const isStop = action === 'stop';
  return ask(
    isStop ? trans.__('Stop all ranks?') : trans.__('Restart all ranks?'),
    trans._n(
      'The variables on %1 rank of %2 will be lost.',
      'The variables on all %1 ranks of %2 will be lost.',
      living,
      PathExt.basename(pool.name) || pool.id
    ),
    isStop ? trans.__('Stop') : trans.__('Restart')
  );
}
