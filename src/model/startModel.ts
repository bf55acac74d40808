import type { Contents } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './client';
import type { IStartChoice, IStartSchema } from './contract';
import { toChoice, errorsOf } from './draft';
import type { Draft } from './draft';
import { MAX_RANKS } from './tokens';
import type { ICurrentNotebook, INotebook, IPoolsModel } from './tokens';
import { trans } from './trans';
import type { UiState } from './uiState';

/**
 * What a pool can be asked for, and what was chosen for each notebook.
 */
export interface IStartModel {
  /** Emitted after any change below. */
  readonly changed: ISignal<IStartModel, void>;
  /** Another object after each change. */
  readonly schema: IStartSchema;
  /** Whether the server is being asked for the schema for the first time. */
  readonly isLoading: boolean;
  /** Ask the server what it can be asked for, unless that is known. */
  load(): Promise<void>;
  /** Another object after each change. */
  draft(path: string): Draft;
  /** Whether anything was chosen for a notebook. */
  isChosen(path: string): boolean;
  /** Without a value, the server chooses. */
  change(path: string, field: string, value?: ReadonlyPartialJSONValue): void;
  /** What to start for a notebook when nobody looks at the form; null if something in that is wrong. */
  choice(path: string, offer: number | null): Promise<IStartChoice | null>;
}

export const IStartModel = new Token<IStartModel>(
  'jupyter-dist-server:IStartModel',
  'What a pool can be asked for, and what was chosen for each notebook.'
);

const NOTHING: Draft = {};

/**
 * Asks the server for the schema when it is needed, and again when it has come back.
 */
export class StartModel implements IStartModel {
  constructor(
    private readonly _pools: IPoolsModel,
    current: ICurrentNotebook,
    private readonly _choices: UiState
  ) {
    this._schema = this._ranksOnly();
    _pools.changed.connect(this._onPools, this);
    current.changed.connect(() => this._follow(current.notebook));
    _choices.changed.connect(this._emit, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get schema(): IStartSchema {
    return this._schema;
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  load(): Promise<void> {
    if (!this._loading || this._hasFailed) {
      this._loading = this._load();
    }
    return this._loading;
  }

  draft(path: string): Draft {
    return (this._choices.get(path) as Draft | undefined) ?? NOTHING;
  }

  isChosen(path: string): boolean {
    return Object.keys(this.draft(path)).length > 0;
  }

  change(path: string, field: string, value?: ReadonlyPartialJSONValue): void {
    const draft = { ...this.draft(path), [field]: value };
    if (value === undefined) {
      delete draft[field];
    }
    this._choices.set(path, draft);
  }

  async choice(
    path: string,
    offer: number | null
  ): Promise<IStartChoice | null> {
    await Promise.all([this.load(), this._choices.ready]);
    const draft = this.draft(path);
    const wrong = errorsOf(this._schema, draft, offer);
    return Object.keys(wrong).length
      ? null
      : toChoice(this._schema, draft, offer);
  }

  /** What was chosen for a file goes with it, and is nothing for another one of the same name. */
  follow({ type, oldValue, newValue }: Contents.IChangedArgs): void {
    if (type === 'new' && newValue?.path) {
      this._choices.forget(newValue.path);
    } else if (type === 'delete' && oldValue?.path) {
      this._choices.forget(oldValue.path);
    } else if (type === 'rename' && oldValue?.path && newValue?.path) {
      this._choices.rename(oldValue.path, newValue.path);
    }
  }

  private async _load(): Promise<void> {
    this._isLoading = this._loading === null;
    this._hasFailed = false;
    this._emit();
    try {
      this._schema = await this._pools.startSchema();
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      // An older server has none: ranks can be started all the same.
      this._schema = this._ranksOnly();
      this._hasFailed = true;
    }
    this._isLoading = false;
    this._emit();
  }

  private _ranksOnly(): IStartSchema {
    return {
      type: 'object',
      properties: {
        num_ranks: {
          type: 'integer',
          title: trans.__('Ranks'),
          description: trans.__('How many processes to start.'),
          minimum: 1,
          maximum: MAX_RANKS,
          'x-widget': 'ranks'
        }
      }
    };
  }

  private _onPools(): void {
    const isLive = this._pools.connection.state === 'live';
    if (isLive && !this._wasLive && this._loading) {
      // It may be another server by now.
      this._loading = this._load();
    }
    this._wasLive = isLive;
  }

  /** A notebook that gets another name keeps its choice. Several may share a kernel, but no session. */
  private _follow(notebook: INotebook | null): void {
    const before = this._notebook;
    this._notebook = notebook;
    if (
      before?.sessionId &&
      before.sessionId === notebook?.sessionId &&
      before.path !== notebook.path
    ) {
      this._choices.rename(before.path, notebook.path);
    }
  }

  private _emit(): void {
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _schema: IStartSchema;
  private _isLoading = false;
  private _loading: Promise<void> | null = null;
  /** Whether to ask again when the form is shown again. */
  private _hasFailed = false;
  private _wasLive = false;
  private _notebook: INotebook | null = null;
}
