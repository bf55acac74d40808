import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import { IRunningSessionManagers } from '@jupyterlab/running';
import type { IRunningSessions } from '@jupyterlab/running';
import type { CommandRegistry } from '@lumino/commands';
import { JSONExt } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import type { IPool } from '../model/contract';
import { CommandIDs, IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { openNotebook } from '../ui/dialogs';
import { ranksIcon } from '../ui/icons';
import { joinFacts } from '../words/format';
import { countRanks, poolState } from '../words/poolWords';

/** Lists the pools in JupyterLab's Running panel. */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:running',
  description: 'Lists the pools of ranks beside terminals and kernels.',
  autoStart: true,
  requires: [IPoolsModel],
  optional: [IRunningSessionManagers],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    managers: IRunningSessionManagers | null
  ): void => {
    managers?.add(new RunningPools(model, commands));
  }
};

/** The server's pools as JupyterLab's Running panel lists them. */
export class RunningPools implements IRunningSessions.IManager {
  constructor(
    private readonly _model: IPoolsModel,
    private readonly _commands: CommandRegistry
  ) {
    _model.changed.connect(this._onChanged, this);
  }

  readonly name = trans.__('Pools of Ranks');
  readonly shutdownLabel = trans.__('Stop Ranks');
  readonly shutdownAllLabel = trans.__('Stop All Pools');
  readonly shutdownAllConfirmationText = trans.__(
    'The variables on all ranks of all pools will be lost.'
  );
  readonly runningChanged = new Signal<unknown, void>(this);

  running(): IRunningSessions.IRunningItem[] {
    return this._pools().map(pool => ({
      icon: () => ranksIcon,
      label: () => PathExt.basename(pool.name) || pool.id,
      labelTitle: () => `${pool.name || pool.id}\n${this._detail(pool)}`,
      detail: () => this._detail(pool),
      open: () => void this._open(pool),
      // Unlike a kernel's, it asks where variables would be lost.
      shutdown: () =>
        void this._commands.execute(CommandIDs.stopPool, { pool: pool.id })
    }));
  }

  shutdownAll(): void {
    for (const { id, state } of this._pools()) {
      if (state !== 'COMPLETING') {
        void this._model.stop(id);
      }
    }
  }

  /** Every change is pushed; there is something to do only when the connection is gone. */
  refreshRunning(): void {
    if (this._model.connection.state !== 'live') {
      this._model.reconnect();
    }
  }

  private _pools(): IPool[] {
    return [...this._model.pools.values()]
      .filter(({ ended }) => ended === null)
      .sort((a, b) => a.created - b.created);
  }

  private _detail(pool: IPool): string {
    const words =
      pool.orphaned === null
        ? poolState(pool)?.words
        : trans.__('its kernel is gone');
    return joinFacts([countRanks(pool.world_size), words]);
  }

  private async _open({ name }: IPool): Promise<void> {
    await this._commands.execute(CommandIDs.openPanel);
    if (name) {
      await openNotebook(name, this._commands);
    }
  }

  /** The list is drawn anew each time, so only for what can be seen in it. */
  private _onChanged(): void {
    const shown = this._pools().map(pool => [
      pool.id,
      pool.name,
      this._detail(pool)
    ]);
    if (!JSONExt.deepEqual(shown, this._shown)) {
      this._shown = shown;
      this.runningChanged.emit();
    }
  }

  private _shown: string[][] = [];
}
