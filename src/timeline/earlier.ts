import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IPoolsModel } from '../model/tokens';
import type { Bands } from './bands';
import type { IPast } from './history';

/**
 * Has the server tell which cells ran while nobody here could follow them: before the page was
 * loaded, and while the connection was lost.
 *
 * While nobody looks it asks nothing.
 */
export class EarlierCells implements IDisposable {
  constructor(
    private readonly _pools: IPoolsModel,
    private readonly _bands: Bands,
    private readonly _past: IPast
  ) {
    _pools.changed.connect(this._look, this);
  }

  /** Emitted when the answer has come, or has not. */
  get loaded(): ISignal<this, void> {
    return this._loaded;
  }

  /** Why it has not, in a sentence. */
  get error(): string | null {
    return this._error;
  }

  /** Whether somebody looks. */
  set isWanted(isWanted: boolean) {
    this._isWanted = isWanted;
    if (isWanted && this._error !== null) {
      this._isAsked = false;
    }
    this._look();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._pools.changed.disconnect(this._look, this);
    Signal.clearData(this);
  }

  private _look(): void {
    // Only then is known from when on the states are followed.
    const isLive = this._pools.connection.state === 'live';
    this._isAsked &&= isLive;
    if (this._isWanted && isLive && !this._isAsked) {
      this._isAsked = true;
      void this._load();
    }
  }

  private async _load(): Promise<void> {
    const round = ++this._round;
    let error: string | null = null;
    try {
      this._bands.merge(await this._past.loadCells());
    } catch (reason) {
      error = reason instanceof Error ? reason.message : String(reason);
    }
    if (round === this._round && !this._isDisposed) {
      this._error = error;
      this._loaded.emit();
    }
  }

  private readonly _loaded = new Signal<this, void>(this);
  private _error: string | null = null;
  private _isWanted = false;
  /** How often it was asked for. */
  private _round = 0;
  /** Since the connection was made. */
  private _isAsked = false;
  private _isDisposed = false;
}
