import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { JSONExt } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { poolOf } from './contract';
import type { IApiError, IPool } from './contract';
import type { ICurrentNotebook, INotebook, IPoolsModel } from './tokens';

/** Whether a notebook's kernel is Python's; also while that is not known. */
export function isPython({ session, specsManager }: ISessionContext): boolean {
  const spec = specsManager.specs?.kernelspecs[session?.kernel?.name ?? ''];
  return !spec || /^i?python/i.test(spec.language);
}

/** What the pools model needs to know of the notebooks. */
export interface INotebookKernels {
  /** The id of the current notebook's kernel. */
  readonly current: string | null;
  /** Run a magic unseen in a notebook's kernel; answers what the kernel said against it. */
  runMagic(kernelId: string, line: string): Promise<string | null>;
}

/**
 * The kernels of the notebooks that are open.
 */
export class NotebookKernels implements INotebookKernels {
  constructor(private readonly _tracker: INotebookTracker) {}

  get current(): string | null {
    const context = this._tracker.currentWidget?.sessionContext;
    return context?.session?.kernel?.id ?? null;
  }

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
      // The kernel was restarted or closed before it could answer: there is nothing to run it in.
      return null;
    }
  }
}

/**
 * Follows the current notebook, its kernel, and its pool.
 */
export class CurrentNotebook implements ICurrentNotebook {
  constructor(
    tracker: INotebookTracker,
    private readonly _pools: IPoolsModel
  ) {
    _pools.changed.connect(this._emit, this);
    tracker.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(tracker, tracker.currentWidget);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get notebook(): INotebook | null {
    const found = this._context && describe(this._context);
    if (!JSONExt.deepEqual({ ...found }, { ...this._notebook })) {
      this._notebook = found;
    }
    return this._notebook;
  }

  get pool(): IPool | null {
    return poolOf(this._kernelId, this._pools.pools.values());
  }

  get error(): IApiError | null {
    return this._pools.errorOf(this._kernelId);
  }

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
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
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
