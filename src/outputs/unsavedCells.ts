import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

import { tell } from './kernelLine';

/** The executions that have ended, and whose outputs this page has and has not saved. */
export class UnsavedCells {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _kernel: Kernel.IKernelConnection
  ) {
    let saving: string[] = [];
    _panel.context.saveState.connect((_, state) => {
      if (state === 'started') {
        saving = this.requests;
      } else if (state === 'completed') {
        this._saved(saving);
      }
    }, this);
    _kernel.iopubMessage.connect((_, { header, parent_header, content }) => {
      const parent = parent_header as { session?: string; msg_type?: string };
      if (
        header.msg_type === 'status' &&
        (content as { execution_state: string }).execution_state === 'idle' &&
        parent.msg_type === 'execute_request' &&
        parent.session === _kernel.clientId &&
        !this.isTorn
      ) {
        this.add((parent_header as { msg_id: string }).msg_id);
      }
    }, this);
  }

  /** Whether the connection was lost, and outputs of our own cells perhaps with it. */
  isTorn = false;

  get requests(): string[] {
    return [...this._requests];
  }

  add(request: string): void {
    this._requests.add(request);
    // A shared document is saved by the server.
    if (this._panel.context.model.collaborative) {
      this._saved([request]);
    }
  }

  private _saved(saved: string[]): void {
    if (saved.length > 0 && !this._kernel.isDisposed) {
      tell(this._kernel, { saved });
      saved.forEach(request => this._requests.delete(request));
    }
  }

  private readonly _requests = new Set<string>();
}
