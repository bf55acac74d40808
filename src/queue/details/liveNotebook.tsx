import type { INotebookContent } from '@jupyterlab/nbformat';
import { NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ServerConnection, type Contents } from '@jupyterlab/services';
import type { ITranslator } from '@jupyterlab/translation';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import { JSONExt, type JSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import React from 'react';

import { trans } from '../../model/trans';

/** Shows a notebook while a job writes it, cell by cell; it is read-only. */
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
      // In the mode `full`, JupyterLab 4.2 hides a cell that replaces another.
      notebookConfig: {
        ...StaticNotebook.defaultNotebookConfig,
        windowingMode: 'defer'
      },
      translator: _live.translator
    });
    this.addClass('jp-dist-LiveNotebook');
    // The context menu is for the current notebook.
    this.node.dataset.jpSuppressContextMenu = '';
    this.model = new NotebookModel({ translator: _live.translator });
    this._timer = setInterval(() => {
      if (!this._isDone && this.isVisible && !document.hidden) {
        void this._look();
      }
    }, 2000);
    void this._look();
  }

  readonly stateChanged = new Signal<this, LiveNotebook.State>(this);

  dispose(): void {
    clearInterval(this._timer);
    const { model } = this;
    super.dispose();
    model?.dispose();
  }

  /** Follow the job again, which may have been requeued. */
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
      // This must be first: after the job's end, the file is complete.
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

  /** Answers whether the complete file is shown. */
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
      // Other errors: it is half written, or the server does not respond.
      return error instanceof ResponseError && error.response.status === 404;
    }
    return true;
  }

  /** Draw only cells that have changed. */
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
  private _isDone = false;
}

export namespace LiveNotebook {
  /** `missing`: the job has not written it yet. */
  export type State = 'missing' | 'running' | 'ended';

  export interface IOptions {
    path: string;
    contents: Contents.IManager;
    hasEnded: () => Promise<boolean>;
    rendermime: IRenderMimeRegistry;
    contentFactory: StaticNotebook.IContentFactory;
    translator: ITranslator;
  }
}

/** The line above the notebook: why it is read-only, and a button after the job's end. */
export class NotebookHead extends ReactWidget {
  constructor(
    private readonly _job: string,
    private readonly _open: () => void
  ) {
    super();
    this.addClass('jp-dist-NotebookHead');
  }

  tell(state: LiveNotebook.State): void {
    if (state !== this._state) {
      this._state = state;
      this.update();
    }
  }

  protected render(): JSX.Element {
    const [job, state] = [this._job, this._state];
    const words = {
      missing: trans.__('Job %1 has not written its notebook yet.', job),
      running: trans.__('Read-only: job %1 is writing this notebook.', job),
      ended: trans.__('Read-only: job %1 has ended.', job)
    };
    return (
      <>
        <p role="status">{words[state]}</p>
        {state === 'ended' && (
          <Button small onClick={this._open}>
            {trans.__('Open as document')}
          </Button>
        )}
      </>
    );
  }

  private _state: LiveNotebook.State = 'missing';
}
