import type { NotebookPanel } from '@jupyterlab/notebook';
import { caretDownIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import React from 'react';

import {
  deadRanks,
  hasMode,
  hasRanks,
  poolOf,
  type IPool
} from '../../model/contract';
import { isPython } from '../../model/notebook';
import { parkStage } from '../../model/parking';
import type { IStartModel } from '../../model/startModel';
import { CommandIDs, type IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { silentRanks } from '../../model/waiting';
import { warningIcon } from '../../ui/icons';
import { isSame } from '../../ui/useModel';
import { formatBackend, joinFacts } from '../../words/format';
import { countRanks, poolState, type IPoolState } from '../../words/poolWords';

/** `Ranks: 4 ▾` in the toolbar of a notebook: the state of its pool, and a menu. */
export class RanksButton extends ReactWidget {
  constructor(private readonly _options: RanksButton.IOptions) {
    super();
    const { panel, model, commands } = _options;
    this.addClass('jp-dist-RanksItem');
    this._menu = new Menu({ commands });
    this._menu.aboutToClose.connect(this._onClosed, this);
    model.changed.connect(this.update, this);
    model.telemetry.changed.connect(this._onTelemetry, this);
    panel.sessionContext.kernelChanged.connect(this.update, this);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._menu.dispose();
      super.dispose();
    }
  }

  protected render(): JSX.Element | null {
    const { model, panel } = this._options;
    const connection = model.connection.state;
    const pool = this._pool;
    const isOffered = pool !== null || isPython(panel.sessionContext);
    if (connection === 'missing' || connection === 'refused' || !isOffered) {
      return null;
    }
    const isStale = connection === 'stale';
    const state = pool && poolState(pool, this._silent);
    const mood = isStale ? 'stale' : (state?.mood ?? 'none');
    return (
      <>
        <button
          type="button"
          className={`jp-dist-RanksButton jp-mod-${mood}`}
          aria-haspopup="menu"
          aria-expanded={this._menu.isAttached}
          title={
            model.isKnown
              ? explain(pool, state, isStale)
              : trans.__('No connection to the server yet.')
          }
          onClick={event => {
            // A toolbar moves the focus to its notebook after a click, unless it is in the toolbar.
            event.stopPropagation();
            this._open(event.currentTarget);
          }}
        >
          {mood === 'error' ? (
            <warningIcon.react
              tag="span"
              className="jp-dist-RanksButton-icon"
            />
          ) : (
            <span className="jp-dist-RanksButton-dot" />
          )}
          <span>
            {model.isKnown ? count(pool, state) : trans.__('Ranks: %1', '–')}
          </span>
          <caretDownIcon.react
            tag="span"
            className="jp-dist-RanksButton-caret"
          />
        </button>
        {hasMode(pool, this._kernelId) && (
          <button
            type="button"
            className="jp-dist-ModeButton"
            aria-pressed
            title={trans.__(
              'Every cell runs on all ranks. Click to run cells in the notebook again.'
            )}
            onClick={() => void model.setMode(this._kernelId ?? '', false)}
          >
            {trans.__('all cells on ranks')}
          </button>
        )}
      </>
    );
  }

  /** Readings arrive each second, but few change which ranks do not respond. */
  private _onTelemetry(): void {
    const { telemetry } = this._options.model;
    const pool = this._pool;
    const silent = pool ? silentRanks(pool, telemetry) : [];
    if (!isSame(silent, this._silent)) {
      this._silent = silent;
      this.update();
    }
  }

  private get _kernelId(): string | undefined {
    return this._options.panel.sessionContext.session?.kernel?.id;
  }

  /** Null also after the pool was stopped. */
  private get _pool(): IPool | null {
    const { model } = this._options;
    const pool = poolOf(this._kernelId, model.pools.values());
    return pool && poolState(pool) ? pool : null;
  }

  private _open(button: HTMLElement): void {
    // The command that starts ranks does so for the current notebook.
    this._options.makeCurrent();
    this._fill(this._pool);
    const { left, bottom } = button.getBoundingClientRect();
    this._menu.open(left, bottom);
    this.update();
  }

  private _fill(pool: IPool | null): void {
    const menu = this._menu;
    menu.clearItems();
    if (!pool || pool.state === 'FAILED') {
      const { model, start, panel } = this._options;
      const { defaultRanks } = model;
      // The choice in the form includes the number of ranks.
      const isChosen = start.isChosen(panel.sessionContext.path);
      const args =
        isChosen || defaultRanks === null ? undefined : { ranks: defaultRanks };
      menu.addItem({ command: CommandIDs.startPool, args });
    } else {
      const args = { pool: pool.id };
      if (parkStage(pool) === 'parked') {
        menu.addItem({ command: CommandIDs.resumePool, args });
      }
      menu.addItem({ command: CommandIDs.interruptRanks, args });
      if (deadRanks(pool).length > 0) {
        menu.addItem({
          command: CommandIDs.restartRanks,
          args: { ...args, dead: true }
        });
      }
      menu.addItem({ command: CommandIDs.restartRanks, args });
      menu.addItem({ command: CommandIDs.stopPool, args });
      menu.addItem({ type: 'separator' });
      menu.addItem({ command: CommandIDs.toggleMode });
    }
    menu.addItem({ type: 'separator' });
    menu.addItem({ command: CommandIDs.runNotebookAsJob });
    menu.addItem({ command: CommandIDs.openPanel });
  }

  private _onClosed(): void {
    this.node.querySelector('button')?.focus();
    this.update();
  }

  private readonly _menu: Menu;
  private _silent: number[] = [];
}

export namespace RanksButton {
  export interface IOptions {
    panel: NotebookPanel;
    model: IPoolsModel;
    start: IStartModel;
    commands: CommandRegistry;
    /** Make the notebook the current one, if it is not. */
    makeCurrent: () => void;
  }
}

/** `Ranks: 4`, `Ranks · starting 1/4`, `Ranks: 4 · rank 1 died` */
function count(pool: IPool | null, state: IPoolState | null): string {
  if (!pool || !state) {
    return trans.__('Ranks: %1', 0);
  }
  return joinFacts([
    hasRanks(pool) ? trans.__('Ranks: %1', pool.world_size) : trans.__('Ranks'),
    (state.mood === 'wait' || state.mood === 'error') && state.words
  ]);
}

function explain(
  pool: IPool | null,
  state: IPoolState | null,
  isStale: boolean
): string {
  if (isStale) {
    return trans.__('The connection to the server is lost.');
  }
  if (!pool || !state) {
    return trans.__('No ranks run for this notebook.');
  }
  return pool.reason
    ? pool.reason.message
    : joinFacts([
        countRanks(pool.world_size),
        state.words,
        formatBackend(pool.backend)
      ]);
}
