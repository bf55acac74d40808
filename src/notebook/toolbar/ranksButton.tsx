import type { NotebookPanel } from '@jupyterlab/notebook';
import { caretDownIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import React from 'react';

import { deadRanks, hasMode, poolOf } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { isPython } from '../../model/notebook';
import type { IStartModel } from '../../model/startModel';
import { CommandIDs } from '../../model/tokens';
import type { IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { silentRanks } from '../../model/waiting';
import { warningIcon } from '../../ui/icons';
import { isSame } from '../../ui/useModel';
import { formatBackend, joinFacts } from '../../words/format';
import { countRanks, poolState } from '../../words/poolState';
import type { IPoolState } from '../../words/poolState';

/**
 * `Ranks: 4 ▾` in the toolbar of a notebook: how its pool does, and a menu of what can be done.
 */
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
    const { state } = model.connection;
    const pool = this._pool;
    const isOffered = pool !== null || isPython(panel.sessionContext);
    if (state === 'missing' || state === 'refused' || !isOffered) {
      return null;
    }
    const isOn = hasMode(pool, this._kernelId);
    return (
      <>
        <RanksLabel
          pool={pool}
          silent={this._silent}
          isStale={state === 'stale'}
          isKnown={model.isKnown}
          isOpen={this._menu.isAttached}
          open={button => this._open(button)}
        />
        {isOn && <ModeButton end={() => this._endMode()} />}
      </>
    );
  }

  /** Readings come each second: few of them say that other ranks do not respond. */
  private _onTelemetry(): void {
    const { telemetry } = this._options.model;
    const pool = this._pool;
    const silent = pool ? silentRanks(pool, telemetry) : [];
    if (!isSame(silent, this._silent)) {
      this._silent = silent;
      this.update();
    }
  }

  /** For this notebook, which need not be the current one. */
  private _endMode(): void {
    const kernelId = this._kernelId;
    if (kernelId) {
      void this._options.model.setMode(kernelId, false);
    }
  }

  private get _kernelId(): string | undefined {
    return this._options.panel.sessionContext.session?.kernel?.id;
  }

  /** Null when it has ended as it was told to. */
  private get _pool(): IPool | null {
    const { model } = this._options;
    const pool = poolOf(this._kernelId, model.pools.values());
    return pool && poolState(pool) ? pool : null;
  }

  private _open(button: HTMLElement): void {
    // What starts ranks starts them for the current notebook, so that has to be this one.
    this._options.makeCurrent();
    this._fill(this._pool);
    const { left, bottom } = button.getBoundingClientRect();
    this._menu.open(left, bottom);
    this.update();
  }

  private _fill(pool: IPool | null): void {
    this._menu.clearItems();
    if (!pool || pool.state === 'FAILED') {
      const { model, start, panel } = this._options;
      const { defaultRanks } = model;
      // What was chosen in the form is more than a number.
      const isChosen = start.isChosen(panel.sessionContext.path);
      const args =
        isChosen || defaultRanks === null ? undefined : { ranks: defaultRanks };
      this._menu.addItem({ command: CommandIDs.startPool, args });
    } else {
      const args = { pool: pool.id };
      this._menu.addItem({ command: CommandIDs.interruptRanks, args });
      if (deadRanks(pool).length > 0) {
        this._menu.addItem({
          command: CommandIDs.restartRanks,
          args: { ...args, dead: true }
        });
      }
      this._menu.addItem({ command: CommandIDs.restartRanks, args });
      this._menu.addItem({ command: CommandIDs.stopPool, args });
      this._menu.addItem({ type: 'separator' });
      this._menu.addItem({ command: CommandIDs.toggleMode });
    }
    this._menu.addItem({ type: 'separator' });
    this._menu.addItem({ command: CommandIDs.runNotebookAsJob });
    this._menu.addItem({ command: CommandIDs.openPanel });
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
    /** Make the panel the current one, if it is not. */
    makeCurrent: () => void;
  }
}

interface IRanksLabelProps {
  pool: IPool | null;
  /** Ranks that do not respond. */
  silent: number[];
  isStale: boolean;
  isKnown: boolean;
  isOpen: boolean;
  open: (button: HTMLElement) => void;
}

function RanksLabel(props: IRanksLabelProps): JSX.Element {
  const { pool, silent, isStale, isKnown, isOpen, open } = props;
  const state = pool && poolState(pool, silent);
  const unknown = trans.__('No connection to the server yet.');
  const mood = isStale ? 'stale' : (state?.mood ?? 'none');
  return (
    <button
      type="button"
      className={`jp-dist-RanksButton jp-mod-${mood}`}
      aria-haspopup="menu"
      aria-expanded={isOpen}
      title={isKnown ? explain(pool, state, isStale) : unknown}
      onClick={event => {
        // A toolbar gives the focus to its notebook when a click leaves it elsewhere, such as in the menu.
        event.stopPropagation();
        open(event.currentTarget);
      }}
    >
      {mood === 'error' ? (
        <warningIcon.react tag="span" className="jp-dist-RanksButton-icon" />
      ) : (
        <span className="jp-dist-RanksButton-dot" />
      )}
      <span>{isKnown ? count(pool, state) : trans.__('Ranks: %1', '–')}</span>
      <caretDownIcon.react tag="span" className="jp-dist-RanksButton-caret" />
    </button>
  );
}

/** `Ranks: 4`, `Ranks · starting 1/4`, `Ranks: 4 · rank 1 died`. */
function count(pool: IPool | null, state: IPoolState | null): string {
  if (!pool || !state) {
    return trans.__('Ranks: %1', 0);
  }
  return joinFacts([
    pool.state === 'RUNNING'
      ? trans.__('Ranks: %1', pool.world_size)
      : trans.__('Ranks'),
    (pool.state !== 'RUNNING' || state.mood === 'error') && state.words
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

interface IModeButtonProps {
  end: () => void;
}

/**
 * Only there while all cells run on ranks, as that changes what every cell means.
 */
function ModeButton({ end }: IModeButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-dist-ModeButton"
      aria-pressed
      title={trans.__(
        'Every cell runs on all ranks. Click to run cells in the notebook again.'
      )}
      onClick={end}
    >
      {trans.__('all cells on ranks')}
    </button>
  );
}
