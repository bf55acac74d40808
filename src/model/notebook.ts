import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { INotebook } from './tokens';

/** Whether a notebook's kernel is Python's; also while that is not known. */
export function isPython({ session, specsManager }: ISessionContext): boolean {
  const spec = specsManager.specs?.kernelspecs[session?.kernel?.name ?? ''];
  return !spec || /^i?python/i.test(spec.language);
}

/** What the pools model needs to know of the notebooks. */
export interface INotebookFollower {
  readonly current: INotebook | null;
  readonly changed: ISignal<INotebookFollower, void>;
  /** Run a magic unseen in a notebook's kernel; answers what the kernel said against it. */
  runMagic(kernelId: string, line: string): Promise<string | null>;
}

/**
 * Follows the current notebook and its kernel.
 */
export class NotebookFollower implements INotebookFollower {
  constructor(private readonly _tracker: INotebookTracker) {
    _tracker.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(_tracker, _tracker.currentWidget);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get current(): INotebook | null {
    if (!this._context) {
      return null;
    }
    const { path, session } = this._context;
    return {
      path,
      kernelId: session?.kernel?.id ?? null,
      sessionId: session?.id ?? null,
      isPython: isPython(this._context)
    };
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
}
