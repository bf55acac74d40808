import type { INotebookContent } from '@jupyterlab/nbformat';
import { NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ServerConnection, type Contents } from '@jupyterlab/services';
import type { ITranslator } from '@jupyterlab/translation';
import { JSONExt, type JSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

/** Milliseconds between two looks at the file. */
const PAUSE = 2000;

/** A notebook that a job writes, cell by cell: it is shown as it grows, and cannot be changed. */
export class LiveNotebook extends StaticNotebook {
  constructor(private readonly _live: LiveNotebook.IOptions) {
    super({
      rendermime: _live.rendermime.clone(),
      contentFactory: _live.contentFactory,
      // A job runs Python.
      mimeTypeService: {
        getMimeTypeByLanguage: () => 'text/x-ipython',
        getMimeTypeByFilePath: () => 'text/x-ipython'
      },
      // Windowed, JupyterLab 4.2 hides a cell that takes the place of another.
      notebookConfig: {
        ...StaticNotebook.defaultNotebookConfig,
        windowingMode: 'defer'
      },
      translator: _live.translator
    });
    this.addClass('jp-dist-LiveNotebook');
    // Its items would be about another notebook.
    this.node.dataset.jpSuppressContextMenu = '';
    this.model = new NotebookModel({ translator: _live.translator });
    this._timer = setInterval(() => {
      if (!this._isDone && this.isVisible && !document.hidden) {
        void this._look();
      }
    }, PAUSE);
    void this._look();
  }

  /** Emitted when the state below is another one. */
  readonly stateChanged = new Signal<this, LiveNotebook.State>(this);

  dispose(): void {
    clearInterval(this._timer);
    const { model } = this;
    super.dispose();
    model?.dispose();
  }

  /** Look again, at a job that may have been queued again. */
  follow(): void {
    this._isDone = false;
    void this._look();
  }

  private async _look(): Promise<void> {
    if (this._isLooking) {
      return;
    }
    this._isLooking = true;
    try {
      // Before the file: when the job has ended, all is in it.
      const hasEnded = await this._live.hasEnded();
      const isCurrent = await this._read();
      if (this.isDisposed) {
        return;
      }
      this._isDone = hasEnded && isCurrent;
      const isThere = this._modified !== null;
      this.stateChanged.emit(
        hasEnded ? 'ended' : isThere ? 'running' : 'missing'
      );
    } finally {
      this._isLooking = false;
    }
  }

  /** Answers whether all is shown that is in the file now. */
  private async _read(): Promise<boolean> {
    const { contents, path } = this._live;
    try {
      const { last_modified } = await contents.get(path, { content: false });
      if (last_modified !== this._modified) {
        const { content } = await contents.get(path, {
          type: 'notebook',
          content: true
        });
        if (!this.isDisposed) {
          this._show(content as INotebookContent);
          this._modified = last_modified;
        }
      }
    } catch (error) {
      const { NetworkError, ResponseError } = ServerConnection;
      if (!(error instanceof ResponseError || error instanceof NetworkError)) {
        throw error;
      }
      // It is half written, or the server does not respond, unless it is not there yet.
      return error instanceof ResponseError && error.response.status === 404;
    }
    return true;
  }

  /** Only cells that are other ones than before are drawn again. */
  private _show(content: INotebookContent): void {
    const { model } = this;
    const cells = content.cells.map(cell => ({
      ...cell,
      metadata: { ...cell.metadata, editable: false }
    }));
    if (!model || cells.length !== this._cells.length) {
      model?.fromJSON({ ...content, cells });
    } else {
      const { sharedModel } = model;
      cells.forEach((cell, index) => {
        const last = this._cells[index];
        if (!JSONExt.deepEqual(last as JSONValue, cell as JSONValue)) {
          sharedModel.transact(() => {
            sharedModel.deleteCell(index);
            sharedModel.insertCell(index, cell);
          });
        }
      });
    }
    this._cells = cells;
  }

  private readonly _timer: ReturnType<typeof setInterval>;
  private _cells: INotebookContent['cells'] = [];
  private _modified: string | null = null;
  private _isLooking = false;
  /** Whether nothing more will be written. */
  private _isDone = false;
}

export namespace LiveNotebook {
  /** `missing`: the job has not written it yet. */
  export type State = 'missing' | 'running' | 'ended';

  export interface IOptions {
    path: string;
    contents: Contents.IManager;
    /** Whether the job has. */
    hasEnded: () => Promise<boolean>;
    rendermime: IRenderMimeRegistry;
    contentFactory: StaticNotebook.IContentFactory;
    translator: ITranslator;
  }
}
