import type { IRenderMime } from '@jupyterlab/rendermime';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../model/trans';

/** The display below a profiled cell. It has the name of the trace, which is beside the notebook. */
export const TRACE = 'application/vnd.jupyter-dist.trace+json';

const NAME = /^profile-cell-\d+(-\d+)?\.json\.gz$/;

export function isTrace(name: string): boolean {
  return NAME.test(name);
}

/** A link that downloads a trace, and a button that opens it. */
export class TraceView extends ReactWidget implements IRenderMime.IRenderer {
  constructor(
    private readonly _resolver: IRenderMime.IResolver | null,
    private readonly _open: (path: string) => void
  ) {
    super();
    this.addClass('jp-dist-Trace');
  }

  async renderModel({ data }: IRenderMime.IMimeModel): Promise<void> {
    const { file } = { ...(data[TRACE] as { file?: unknown } | null) };
    // Anybody may have written the notebook: only traces are opened.
    this._name = typeof file === 'string' && isTrace(file) ? file : '';
    this._path = this._url = '';
    this.update();
    if (this._name && this._resolver) {
      const url = await this._resolver.resolveUrl(this._name);
      this._url = await this._resolver.getDownloadUrl(url);
      this._path = decodeURIComponent(url);
      this.update();
    }
  }

  protected render(): JSX.Element | null {
    const { _name: name, _path: path } = this;
    if (!name) {
      return null;
    }
    return (
      <>
        <span>{trans.__('Trace of all ranks:')}</span>
        {this._url ? (
          <a href={this._url} download={name}>
            {name}
          </a>
        ) : (
          <span>{name}</span>
        )}
        {path && (
          <Button
            small
            title={trans.__(
              'Open the trace at ui.perfetto.dev, which reads it in the browser and sends it nowhere.'
            )}
            onClick={() => this._open(path)}
          >
            {trans.__('Open in Perfetto')}
          </Button>
        )}
      </>
    );
  }

  private _name = '';
  private _path = '';
  private _url = '';
}
