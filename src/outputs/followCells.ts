import type { ICodeCellModel } from '@jupyterlab/cells';
import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { writersOf } from './cellWriters';
import { FollowedInput, type IQuestion } from './followedInput';
import { dataOf, isOurs, KernelLine } from './kernelLine';
import { find, restore } from './restore';
import { RunningCell, type IShown } from './runningCell';
import { UnsavedCells } from './unsavedCells';

/** These end a cell without a message. */
const ENDS: Kernel.Status[] = ['restarting', 'autorestarting', 'dead'];
/** A cell that another page begins may be known to the kernel a moment later. */
const MOMENT = 1000;

interface IFollowed {
  take: (message: KernelMessage.IIOPubMessage) => void;
  end: () => void;
}

/** Shows in a notebook what cells put out that this page has not run. */
export class FollowCells {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _kernel: Kernel.IKernelConnection
  ) {
    this._line = new KernelLine(_kernel, () => this._followed.size > 0);
    this._unsaved = new UnsavedCells(_panel, _kernel);
    this._line.message.connect((_, message) => {
      const followed = this._followed.get(parentOf(message).msg_id ?? '');
      followed?.take(message);
      this._hear(message);
    });
    this._line.torn.connect(() => this.ask());
    _kernel.iopubMessage.connect((_, message) => this._hear(message), this);
    _kernel.statusChanged.connect((_, status) => {
      if (ENDS.includes(status)) {
        this._endAll();
      } else if (status === 'idle' && this._unsaved.isTorn) {
        this._unsaved.isTorn = false;
        this._ask('');
      }
    }, this);
    let wasConnected = _kernel.connectionStatus === 'connected';
    _kernel.connectionStatusChanged.connect((_, status) => {
      if (status === 'connected') {
        this._unsaved.isTorn = wasConnected;
        wasConnected = true;
      }
    }, this);
    NotebookActions.executionScheduled.connect((_, { cell }) => {
      // It runs again.
      this._followed.forEach((followed, request) => {
        if (this._codes.get(request) === cell.model) {
          followed.end();
        }
      });
    }, this);
    const dispose = () => {
      this._endAll();
      this._line.close();
      Signal.disconnectReceiver(this);
      Signal.disconnectReceiver(this._unsaved);
    };
    _kernel.disposed.connect(dispose, this);
    _panel.disposed.connect(dispose, this);
  }

  /** Complete the outputs of cells that ran without this page, and follow those that run. */
  ask(): void {
    this._ask(this._kernel.clientId);
  }

  /** `session` is that of cells that need no answer. */
  private _ask(session: string, begun = '', mayWait = true): void {
    if (this._panel.isDisposed || this._kernel.isDisposed) {
      return;
    }
    const known = this._unsaved.requests;
    this._line.ask({ session, known }, cells => {
      const { model } = this._panel.content;
      if (model) {
        cells.forEach(shown => this._show(model, shown));
      }
      const isThere = cells.some(({ request }) => request === begun);
      if (begun && !isThere && mayWait) {
        setTimeout(() => this._ask(session, begun, false), MOMENT);
      }
    });
  }

  /** Another page's cell begins. */
  private _hear(message: KernelMessage.IIOPubMessage): void {
    const { session, msg_id } = parentOf(message);
    if (
      message.header.msg_type === 'execute_input' &&
      session !== this._kernel.clientId &&
      msg_id &&
      msg_id !== this._heard
    ) {
      this._heard = msg_id;
      this._ask(this._kernel.clientId, msg_id);
    }
  }

  private _show(model: INotebookModel, shown: IShown): void {
    const earlier = this._followed.get(shown.request);
    earlier?.end();
    const code = find(model.cells, shown);
    const isOwn = shown.session === this._kernel.clientId;
    const isRunning = code?.executionState === 'running';
    const writers = writersOf(model);
    // A cell that runs again, or that another page writes, gets its outputs there.
    if (
      !code ||
      (isOwn
        ? shown.running
        : (isRunning && !model.collaborative) || !writers.mayWrite(code.id))
    ) {
      return;
    }
    // The page that runs it saves it; this one has the same notebook, or leaves it alone.
    const isOthers =
      !model.collaborative && Date.parse(shown.sent) > performance.timeOrigin;
    if (isOthers && code.sharedModel.source !== shown.code) {
      return;
    }
    const change = isOthers
      ? keepingClean(model)
      : (work: () => void) => work();
    if (shown.running) {
      change(() => {
        restore(code, shown);
        this._follow(code, shown, change);
      });
    } else {
      change(() => {
        // What this page has seen is more than what is kept of it.
        if (!shown.cut || !earlier) {
          restore(code, shown);
        }
      });
      this._unsaved.add(shown.request);
    }
  }

  private _follow(
    code: ICodeCellModel,
    shown: IShown,
    change: (work: () => void) => void
  ): void {
    const { request } = shown;
    const { model } = this._panel.content;
    const writers = model && writersOf(model);
    writers?.take(code.id);
    const running = new RunningCell(code, shown);
    const cell = this._panel.content.widgets.find(
      ({ model }) => model === code
    );
    // In JupyterLab 4.2 a cell has no state, but its prompt.
    cell?.setPrompt('*');
    const input = new FollowedInput(this._panel, code, value =>
      this._line.reply(value)
    );
    input.show(shown.question);
    const end = () => {
      this._followed.delete(request);
      this._codes.delete(request);
      input.show(null);
      change(() => running.end());
      cell?.setPrompt(`${code.executionCount ?? ''}`);
      writers?.leave(code.id);
      this._line.settle();
    };
    const take = (message: KernelMessage.IIOPubMessage) => {
      if (isOurs(message)) {
        const { question, answered } = dataOf(message);
        if (question !== undefined) {
          input.show(question as IQuestion | null);
        }
        if (answered) {
          change(() => running.answered(answered as string));
        }
        return;
      }
      let hasEnded = false;
      change(() => {
        hasEnded = running.take(message);
      });
      if (hasEnded) {
        // Its number, and the next cell.
        this.ask();
      }
    };
    this._codes.set(request, code);
    this._followed.set(request, { take, end });
  }

  private _endAll(): void {
    this._followed.forEach(({ end }) => end());
  }

  private readonly _line: KernelLine;
  private readonly _unsaved: UnsavedCells;
  private readonly _followed = new Map<string, IFollowed>();
  private readonly _codes = new Map<string, ICodeCellModel>();
  private _heard = '';
}

function parentOf({ parent_header }: KernelMessage.IIOPubMessage): {
  session?: string;
  msg_id?: string;
} {
  return parent_header;
}

/** Two windows that both save a notebook would be in each other's way. */
function keepingClean(model: INotebookModel): (work: () => void) => void {
  return work => {
    const { dirty } = model;
    work();
    if (!dirty) {
      model.dirty = false;
    }
  };
}
