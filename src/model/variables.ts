import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './client';
import { isBusy } from './contract';
import type { IApiError, IPool } from './contract';
import type { ICurrentNotebook, IPoolsModel } from './tokens';
import type { IVariables } from './variablesContract';

/** Milliseconds: the next cell of *Run All* begins sooner. */
const PAUSE = 250;
/** Milliseconds until ranks that did not respond are asked again: they may only have been slow. */
const AGAIN = 5_000;
/** How often they are asked. */
const TRIES = 3;

/**
 * What the variables of the current notebook's ranks are.
 */
export interface IVariablesModel {
  /** Emitted after any change below. */
  readonly changed: ISignal<IVariablesModel, void>;
  /** Null until they are known. */
  readonly list: IVariables | null;
  /** Whether cells have run, or ranks were replaced, since the list was read. */
  readonly isOld: boolean;
  /** Why they could not be read. */
  readonly error: IApiError | null;
  readonly isChecking: boolean;
  /** Read them, now and after each cell, until the answer is disposed of. */
  watch(): IDisposable;
  /** Read them again after an error. */
  reload(): void;
  /** Compare all of them, however large. */
  check(): Promise<void>;
}

/**
 * Asks the server when no rank runs a cell any more; never while nobody looks.
 */
export class VariablesModel implements IVariablesModel {
  constructor(
    private readonly _current: ICurrentNotebook,
    private readonly _requests: VariablesModel.IRequests
  ) {
    _current.changed.connect(this._follow, this);
    document.addEventListener('visibilitychange', () => this._follow());
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get list(): IVariables | null {
    return this._list;
  }

  get isOld(): boolean {
    return this._read !== this._state;
  }

  get error(): IApiError | null {
    return this._error;
  }

  get isChecking(): boolean {
    return this._checked.has(this._current.pool?.id ?? '');
  }

  watch(): IDisposable {
    this._watchers++;
    this._follow();
    return new DisposableDelegate(() => {
      this._watchers--;
    });
  }

  reload(): void {
    this._error = null;
    this._read = '';
    this._follow();
    this._changed.emit();
  }

  async check(): Promise<void> {
    const pool = this._current.pool;
    if (!pool || this.isChecking) {
      return;
    }
    this._checked.add(pool.id);
    this._changed.emit();
    try {
      await this._ask(pool, () => this._requests.checkVariables(pool.id), true);
    } finally {
      this._checked.delete(pool.id);
      this._changed.emit();
      this._follow();
    }
  }

  /** Notes what has become of the ranks, and reads their variables if these may be others. */
  private _follow(): void {
    const { pool } = this._current;
    const state = stateOf(pool);
    if (state !== this._state) {
      this._state = state;
      this._tries = 0;
      if (pool?.id !== this._poolId) {
        this._poolId = pool?.id;
        this._list = this._error = null;
        this._read = '';
      }
      this._changed.emit();
    }
    if (this._mayRead(pool)) {
      this._isReading = true;
      void this._readSoon();
    }
  }

  private _mayRead(pool: IPool | null): boolean {
    return (
      this._watchers > 0 &&
      !document.hidden &&
      !this._isReading &&
      !this.isChecking &&
      (this.isOld || this._mustAskAgain) &&
      pool?.state === 'RUNNING' &&
      // At first, those of idle ranks are better than none.
      (!isBusy(pool) || !this._list)
    );
  }

  private async _readSoon(): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, PAUSE));
    this._isReading = false;
    const { pool } = this._current;
    if (!pool || !this._mayRead(pool)) {
      return;
    }
    this._isReading = true;
    this._mustAskAgain = false;
    try {
      const list = await this._ask(pool, () =>
        this._requests.variables(pool.id)
      );
      if (list?.silent.length) {
        this._askAgain();
      }
    } finally {
      this._isReading = false;
    }
    this._follow();
  }

  private async _ask(
    pool: IPool,
    request: () => Promise<IVariables>,
    takesPart = this._list === null
  ): Promise<IVariables | null> {
    const [state, turn] = [this._state, ++this._turn];
    let [list, error] = [this._list, null as IApiError | null];
    try {
      list = await request();
    } catch (reason) {
      if (!(reason instanceof ApiError)) {
        throw reason;
      }
      error = reason;
    }
    // Another pool may be looked at by now, or a later question be answered.
    if (pool.id === this._poolId && turn === this._turn) {
      this._read = state;
      this._error = error;
      // Between two cells, the list of all ranks is better than the newest of a few, or of none.
      const isOfSome =
        takesPart && (!this._list || !list || list.ranks.length > 0);
      if (isOfSome || !list?.busy.length) {
        this._list = list;
      }
      this._changed.emit();
    }
    return error ? null : list;
  }

  /** Ask ranks that did not respond another time or two. */
  private _askAgain(): void {
    const turn = this._turn;
    this._tries++;
    if (this._tries < TRIES) {
      window.setTimeout(() => {
        if (turn === this._turn) {
          this._mustAskAgain = true;
          this._follow();
        }
      }, AGAIN);
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _watchers = 0;
  private _poolId: string | undefined = undefined;
  /** What is known of the ranks: another text after each cell. */
  private _state = '';
  /** The same, when the list was asked for. */
  private _read = '';
  private _list: IVariables | null = null;
  private _error: IApiError | null = null;
  private _isReading = false;
  /** How often ranks have not responded since a cell has run. */
  private _tries = 0;
  private _mustAskAgain = false;
  /** Pools whose variables are being compared. */
  private readonly _checked = new Set<string>();
  /** Counts the questions. */
  private _turn = 0;
}

function stateOf(pool: IPool | null): string {
  const ranks = pool?.ranks.map(
    rank => `${rank.pid} ${rank.state} ${rank.since}`
  );
  return pool ? `${pool.id} ${pool.state} ${ranks?.join()}` : '';
}

export namespace VariablesModel {
  export type IRequests = Pick<IPoolsModel, 'variables' | 'checkVariables'>;
}
