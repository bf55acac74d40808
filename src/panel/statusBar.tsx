import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { IPool } from '../model/contract';
import { isParked } from '../model/parking';
import type { IQueueModel } from '../model/queue';
import { serverTime } from '../model/serverTime';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import type { INotedWait } from '../model/waiting';
import { silentRanks } from '../model/waiting';
import { warningIcon } from '../ui/icons';
import { useLongWait } from '../ui/useLongWait';
import { isSame, useModel } from '../ui/useModel';
import { joinFacts, joinSentences } from '../words/format';
import { gpusOf, loadOf } from '../words/loadWords';
import { sayParked } from '../words/parkWords';
import { countRanks, poolState } from '../words/poolWords';
import { sayNotedWait, sayNotedWaitShortly } from '../words/waitWords';

/** Puts the current notebook's pool into the status bar. */
export const statusBarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:status-bar',
  description:
    'Shows the ranks of the current notebook, and how many jobs wait, in the status bar.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook],
  optional: [IStatusBar],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    current: ICurrentNotebook,
    statusBar: IStatusBar | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const item = new StatusItem(
      model,
      current,
      command => void commands.execute(command)
    );
    statusBar.registerStatusItem('jupyter-dist-server:ranks', {
      item,
      align: 'left',
      rank: 20,
      isActive: () => item.isActive,
      activeStateChanged: item.activeChanged
    });
  }
};

/**
 * The current notebook's pool in the status bar: `4 ranks · 82 % · 31/80 GiB`, and `2 jobs wait`, which
 * shows without a pool too.
 */
export class StatusItem extends ReactWidget {
  constructor(
    private readonly _model: IPoolsModel,
    private readonly _current: ICurrentNotebook,
    private readonly _execute: (command: string) => void
  ) {
    super();
    this.addClass('jp-dist-StatusItem');
    _current.changed.connect(this._onChanged, this);
    const { queue } = _model;
    // Not more of it, whose rows cost the server a process that reads NVML.
    this._counting = queue.watch('ends');
    queue.changed.connect(this._onCount, this);
  }

  /** Whether there is something to show. */
  get isActive(): boolean {
    const { connection, queue } = this._model;
    return (
      this._shownPool !== null ||
      (connection.state === 'live' && queue.pending > 0)
    );
  }

  /** Emitted when that may have changed. */
  readonly activeChanged = new Signal<unknown, void>(this);

  dispose(): void {
    this._watching?.dispose();
    this._watching = null;
    this._counting.dispose();
    super.dispose();
  }

  protected render(): JSX.Element | null {
    const pool = this._shownPool;
    return pool ? (
      <StatusText
        pool={pool}
        model={this._model}
        open={() => this._execute(CommandIDs.openPanel)}
      />
    ) : this.isActive ? (
      <button
        type="button"
        title={trans.__('Click to show the queue.')}
        onClick={() => this._execute(CommandIDs.showQueue)}
      >
        {countWaiting(this._model.queue)}
      </button>
    ) : null;
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._follow(true);
  }

  protected onBeforeHide(msg: Message): void {
    this._follow(false);
    super.onBeforeHide(msg);
  }

  /** The pool of the current notebook, if there is something to say of it. */
  private get _shownPool(): IPool | null {
    const { state } = this._model.connection;
    const { pool } = this._current;
    return pool && (state === 'live' || state === 'stale') && poolState(pool)
      ? pool
      : null;
  }

  private _onCount(): void {
    const { pending } = this._model.queue;
    if (pending !== this._count) {
      this._count = pending;
      this._onChanged();
    }
  }

  private _onChanged(): void {
    this.activeChanged.emit();
    this.update();
    this._follow(this.isVisible);
  }

  /** Readings cost the server something: they are asked for while they can be seen. */
  private _follow(isVisible: boolean): void {
    const { telemetry } = this._model;
    const { pool } = this._current;
    if (isVisible && pool?.state === 'RUNNING') {
      this._watching ??= telemetry.watch('gpus');
    } else {
      this._watching?.dispose();
      this._watching = null;
    }
  }

  private readonly _counting: IDisposable;
  private _count = 0;
  private _watching: IDisposable | null = null;
}

interface IStatusTextProps {
  pool: IPool;
  model: IPoolsModel;
  open: () => void;
}

function StatusText(props: IStatusTextProps): JSX.Element {
  const { pool, model, open } = props;
  const isStale = model.connection.state === 'stale';
  const silent = useModel(
    model.telemetry,
    telemetry => silentRanks(pool, telemetry),
    isSame
  );
  const state = poolState(pool, silent);
  const wait = useLongWait(pool, model);
  const isWrong = state?.mood === 'error' || wait !== null;
  // A string: the button is drawn again only when there is something else to read.
  const load = useModel(model.telemetry, telemetry =>
    pool.state === 'RUNNING' && !isParked(pool) && !isStale
      ? joinFacts(loadOf(pool, model.allGpus, telemetry))
      : ''
  );
  const news = isStale
    ? trans.__('connection lost')
    : state?.mood === 'error' || state?.mood === 'wait'
      ? state.words
      : wait
        ? sayNotedWaitShortly(wait)
        : '';
  const ranks = countRanks(pool.world_size);
  const waiting = useModel(model.queue, queue => countWaiting(queue));
  const jobs = !isStale && waiting;
  const text = joinFacts([ranks, news, load, jobs]);
  return (
    <>
      <button
        type="button"
        className={isStale ? 'jp-mod-stale' : wait ? 'jp-mod-waits' : ''}
        title={explain(pool, wait)}
        onClick={open}
      >
        {isWrong && (
          <warningIcon.react tag="span" className="jp-dist-StatusItem-icon" />
        )}
        {text}
      </button>
      <span className="jp-dist-StatusItem-news" role="status">
        {/* Without the load, which would be read out each time it changes. */}
        {isWrong ? joinFacts([ranks, news]) : ''}
      </span>
    </>
  );
}

/** How many own jobs wait; nothing if none does. */
function countWaiting({ pending }: IQueueModel): string {
  return pending > 0 ? trans._n('%1 job waits', '%1 jobs wait', pending) : '';
}

/** What the numbers are, and what a click does. */
function explain(pool: IPool, wait: INotedWait | null): string {
  const open = trans.__('Click to show ranks and GPUs.');
  if (isParked(pool)) {
    return `${sayParked(pool, serverTime())}\n${open}`;
  }
  const gpus = gpusOf(pool).length;
  const meaning =
    gpus > 1
      ? trans.__('Utilization and memory, averaged over %1 GPUs.', gpus)
      : gpus === 1
        ? trans.__('Utilization and memory of the GPU.')
        : trans.__('Mean CPU use of the ranks, and their total memory.');
  const words = wait && sayNotedWait(wait);
  const news = words
    ? joinSentences([words.head, words.rest])
    : pool.reason?.message;
  return `${news ?? meaning}\n${open}`;
}
