import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { JSONExt } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { poolOf } from './contract';
import type { IApiError, IPool } from './contract';
import type { INotebook, IPoolsModel } from './tokens';

/** Whether a notebook's kernel is Python's; also while that is not known. */
export function isPython({ session, specsManager }: ISessionContext): boolean {
  const spec = specsManager.specs?.kernelspecs[session?.kernel?.name ?? ''];
  return !spec || /^i?python/i.test(spec.language);
}

export type INotebookKernels = Readonly<NotebookKernels>;

/** The kernels of the open notebooks. */
export class NotebookKernels {
  constructor(private readonly _tracker: INotebookTracker) {}

  /** The id of the current notebook's kernel. */
  get current(): string | null {
    const context = this._tracker.currentWidget?.sessionContext;
    return context?.session?.kernel?.id ?? null;
  }

  /** Run a magic unseen in a notebook's kernel; returns the error, if there is one. */
  async runMagic(kernelId: string, line: string): Promise<string | null> {
    const panel = this._tracker.find(
      ({ sessionContext }) => sessionContext.session?.kernel?.id === kernelId
    );
    const kernel = panel?.sessionContext.session?.kernel;
    if (!kernel) {
      return null;
    }
    const future = kernel.requestExecute({
      code: line,
      silent: true,
      store_history: false
    });
    try {
      const { content } = await future.done;
      return content.status === 'error'
        ? `${content.ename}: ${content.evalue}`
        : null;
    } catch {
      // The kernel was restarted or closed before it could answer.
      return null;
    }
  }
}

/** The notebook that the user looks at, and its pool. */
export class CurrentNotebook {
  constructor(
    tracker: INotebookTracker,
    private readonly _pools: IPoolsModel
  ) {
    _pools.changed.connect(this._emit, this);
    tracker.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(tracker, tracker.currentWidget);
  }

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);

  /** Another object after each change. */
  get notebook(): INotebook | null {
    const found = this._context && describe(this._context);
    if (!JSONExt.deepEqual({ ...found }, { ...this._notebook })) {
      this._notebook = found;
    }
    return this._notebook;
  }

  /** The newest pool of its kernel. */
  get pool(): IPool | null {
    return poolOf(this._kernelId, this._pools.pools.values());
  }

  /** What went wrong with its last request. */
  get error(): IApiError | null {
    return this._pools.errorOf(this._kernelId);
  }

  /** Whether a request for it, or for its pool, waits for its answer. */
  get isPending(): boolean {
    return (
      this._pools.hasRequest(this._kernelId) ||
      this._pools.hasRequest(this.pool?.id ?? '')
    );
  }

  dismissError(): void {
    this._pools.forgetError(this._kernelId);
  }

  private get _kernelId(): string {
    return this.notebook?.kernelId ?? '';
  }

  private _onCurrentChanged(
    _: INotebookTracker,
    panel: NotebookPanel | null
  ): void {
    const context = panel?.sessionContext ?? null;
    if (context !== this._context) {
      this._disconnect();
      this._context = context;
      context?.kernelChanged.connect(this._emit, this);
      context?.propertyChanged.connect(this._emit, this);
      context?.disposed.connect(this._disconnect, this);
    }
    this._emit();
  }

  private _disconnect(): void {
    this._context?.kernelChanged.disconnect(this._emit, this);
    this._context?.propertyChanged.disconnect(this._emit, this);
    this._context?.disposed.disconnect(this._disconnect, this);
    this._context = null;
  }

  private _emit(): void {
    this.changed.emit();
  }

  private _context: ISessionContext | null = null;
  private _notebook: INotebook | null = null;
}

function describe(context: ISessionContext): INotebook {
  const { path, session } = context;
  return {
    path,
    kernelId: session?.kernel?.id ?? null,
    sessionId: session?.id ?? null,
    isPython: isPython(context)
  };
}
