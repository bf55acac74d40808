import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { asApiError } from './restClient';
import { isBusy } from './contract';
import type { IApiError, IPool } from './contract';
import { isParked } from './parking';
import type { PoolRequests } from './pools';
import type { ICurrentNotebook } from './tokens';
import type { IVariables } from './variablesContract';

/** Milliseconds without a cell before variables are read: with *Run All*, the next cell begins sooner. */
const PAUSE = 250;
/** Milliseconds until ranks that did not respond are asked again. */
const AGAIN = 5_000;
/** How often they are asked. */
const TRIES = 3;

export type IVariablesModel = Readonly<VariablesModel>;

/**
 * The variables of the current notebook's ranks. While somebody watches, they are read when no rank runs a
 * cell any more.
 */
export class VariablesModel {
  constructor(
    private readonly _current: ICurrentNotebook,
    private readonly _requests: PoolRequests
  ) {
    _current.changed.connect(this._follow, this);
    document.addEventListener('visibilitychange', () => this._follow());
  }

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);
  /** Null until they are known. */
  list: IVariables | null = null;
  /** Why they could not be read. */
  error: IApiError | null = null;

  /** Whether cells have run, or ranks were replaced, since the list was read. */
  get isOld(): boolean {
    return this._read !== this._state;
  }

  get isChecking(): boolean {
    return this._checked.has(this._current.pool?.id ?? '');
  }

  /** Read them, now and after each cell, until the result is disposed of. */
  watch(): IDisposable {
    this._watchers++;
    this._follow();
    return new DisposableDelegate(() => {
      this._watchers--;
    });
  }

  /** Read them again after an error. */
  reload(): void {
    this.error = null;
    this._read = '';
    this._follow();
    this.changed.emit();
  }

  /** Compare all of them, however large. */
  async check(): Promise<void> {
    const { pool } = this._current;
    if (!pool || this.isChecking) {
      return;
    }
    this._checked.add(pool.id);
    this.changed.emit();
    try {
      await this._ask(pool, () => this._requests.checkVariables(pool.id), true);
    } finally {
      this._checked.delete(pool.id);
      this.changed.emit();
      this._follow();
    }
  }

  /** Note the state of the ranks, and read their variables if these may have changed. */
  private _follow(): void {
    const { pool } = this._current;
    const state = stateOf(pool);
    if (state !== this._state) {
      this._state = state;
      this._tries = 0;
      if (pool?.id !== this._poolId) {
        this._poolId = pool?.id;
        this.list = this.error = null;
        this._read = '';
      }
      this.changed.emit();
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
      !isParked(pool) &&
      // At first, those of idle ranks are better than none.
      (!isBusy(pool) || !this.list)
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
    takesPart = this.list === null
  ): Promise<IVariables | null> {
    const [state, turn] = [this._state, ++this._turn];
    let [list, error] = [this.list, null as IApiError | null];
    try {
      list = await request();
    } catch (reason) {
      error = asApiError(reason);
    }
    // Another notebook may be current by now, or a later request answered.
    if (pool.id === this._poolId && turn === this._turn) {
      this._read = state;
      this.error = error;
      // Between two cells, the list of all ranks is better than the newest of a few, or of none.
      const isOfSome =
        takesPart && (!this.list || !list || list.ranks.length > 0);
      if (isOfSome || !list?.busy.length) {
        this.list = list;
      }
      this.changed.emit();
    }
    return error ? null : list;
  }

  /** Ask again if ranks did not respond. */
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

  private _watchers = 0;
  private _poolId?: string;
  /** The state of the ranks: another text after each cell. */
  private _state = '';
  /** The state when the list was requested. */
  private _read = '';
  private _isReading = false;
  /** How often ranks have not responded since a cell has run. */
  private _tries = 0;
  private _mustAskAgain = false;
  /** Pools whose variables are being compared. */
  private readonly _checked = new Set<string>();
  /** Counts the requests. */
  private _turn = 0;
}

function stateOf(pool: IPool | null): string {
  const ranks = pool?.ranks.map(
    rank => `${rank.pid} ${rank.state} ${rank.since}`
  );
  return pool
    ? `${pool.id} ${isParked(pool)} ${pool.state} ${ranks?.join()}`
    : '';
}
