import type { Contents } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { asApiError } from './restClient';
import type { IStartChoice, IStartSchema } from './contract';
import { toChoice, errorsOf } from './startDraft';
import type { Draft } from './startDraft';
import { MAX_RANKS } from './tokens';
import type { ICurrentNotebook, INotebook, IPoolsModel } from './tokens';
import { trans } from './trans';
import type { UiState } from './uiState';

export type IStartModel = Readonly<StartModel>;

export const IStartModel = new Token<IStartModel>(
  'jupyter-dist-server:IStartModel',
  'What a pool can be asked for, and what was chosen for each notebook.'
);

const NOTHING: Draft = {};

/** What a new pool can be asked for, by the server's schema, and what was chosen for each notebook. */
export class StartModel {
  constructor(
    private readonly _pools: IPoolsModel,
    current: ICurrentNotebook,
    private readonly _choices: UiState
  ) {
    _pools.changed.connect(this._onPools, this);
    current.changed.connect(() => this._follow(current.notebook));
    _choices.changed.connect(() => this.changed.emit());
  }

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);
  /** Before the server has sent it, only the number of ranks. */
  schema: IStartSchema = {
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
  /** Whether the schema is requested for the first time. */
  isLoading = false;

  /** Request the schema, unless it is known. */
  load(): Promise<void> {
    if (!this._loading || this._hasFailed) {
      this._loading = this._load();
    }
    return this._loading;
  }

  /** Another object after each change. */
  draft(path: string): Draft {
    return (this._choices.get(path) as Draft | undefined) ?? NOTHING;
  }

  isChosen(path: string): boolean {
    return Object.keys(this.draft(path)).length > 0;
  }

  /** Without a value, the server chooses. */
  change(path: string, field: string, value?: ReadonlyPartialJSONValue): void {
    const draft = { ...this.draft(path), [field]: value };
    if (value === undefined) {
      delete draft[field];
    }
    this._choices.set(path, draft);
  }

  /** What to start for a notebook; null if something that was chosen is wrong. */
  async choice(
    path: string,
    offer: number | null
  ): Promise<IStartChoice | null> {
    await Promise.all([this.load(), this._choices.ready]);
    const draft = this.draft(path);
    const wrong = errorsOf(this.schema, draft, offer);
    return Object.keys(wrong).length
      ? null
      : toChoice(this.schema, draft, offer);
  }

  /** Choices follow a file when it is renamed, and go with it. */
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
    this.isLoading = this._loading === null;
    this._hasFailed = false;
    this.changed.emit();
    try {
      this.schema = await this._pools.requests.startSchema();
    } catch (error) {
      asApiError(error);
      this._hasFailed = true;
    }
    this.isLoading = false;
    this.changed.emit();
  }

  private _onPools(): void {
    const isLive = this._pools.connection.state === 'live';
    if (isLive && !this._wasLive && this._loading) {
      // It may be another server by now.
      this._loading = this._load();
    }
    this._wasLive = isLive;
  }

  /** A renamed notebook keeps its choices. Several notebooks may share a kernel, but no session. */
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

  private _loading: Promise<void> | null = null;
  /** Whether to ask again when the form is shown again. */
  private _hasFailed = false;
  private _wasLive = false;
  private _notebook: INotebook | null = null;
}
