import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { IShown } from './runningCell';

/** The type of our messages on the control channel, and the id of the comm of the kernel's. */
export const KIND = 'jupyter_dist_replay';
/** So long, in milliseconds, an unused connection stays: the next cell may begin at once. */
const LINGER = 5000;
/** The kernel's answer is lost if the server was not ready to take it; each try waits twice as long. */
const FIRST_TRY = 1000;
const TRIES = 6;

interface IQuestion {
  content: object;
  onAnswer: (cells: IShown[]) => void;
  ids: string[];
}

/**
 * A connection on which a busy kernel answers at once.
 *
 * JupyterLab's own waits for its first answer on the shell channel, or for 3 s, before it sends anything.
 * What comes after an answer comes on the same connection, so that it is in order.
 */
export class KernelLine {
  constructor(
    private readonly _kernel: Kernel.IKernelConnection,
    private readonly _isNeeded: () => boolean
  ) {
    _kernel.disposed.connect(this.close, this);
  }

  /** Emitted for each message of the kernel to all pages. */
  readonly message = new Signal<this, KernelMessage.IIOPubMessage>(this);

  /** Emitted when messages may have been lost. */
  readonly torn = new Signal<this, void>(this);

  ask(content: object, onAnswer: IQuestion['onAnswer']): void {
    const question: IQuestion = { content, onAnswer, ids: [] };
    this._questions.add(question);
    if (this._open().connectionStatus === 'connected') {
      this._send(question);
    }
  }

  /** Answer what a cell asks its user. */
  reply(value: string): void {
    this._open().sendInputReply({ status: 'ok', value }, {} as never);
  }

  /** Close the connection if it stays unused. */
  settle(): void {
    clearTimeout(this._lingering);
    this._lingering = window.setTimeout(() => {
      if (this._questions.size === 0 && !this._isNeeded()) {
        this.close();
      }
    }, LINGER);
  }

  close(): void {
    clearTimeout(this._lingering);
    this._questions.clear();
    this._connection?.dispose();
    this._connection = null;
  }

  private _open(): Kernel.IKernelConnection {
    if (!this._connection || this._connection.isDisposed) {
      const connection = this._kernel.clone({ handleComms: false });
      let wasConnected = false;
      connection.connectionStatusChanged.connect((_, status) => {
        if (status !== 'connected') {
          return;
        }
        if (wasConnected) {
          this.torn.emit();
        } else {
          this._questions.forEach(question => this._send(question));
        }
        wasConnected = true;
      });
      connection.iopubMessage.connect((_, message) => this._take(message));
      this._connection = connection;
    }
    return this._connection;
  }

  private _send(question: IQuestion): void {
    const connection = this._connection;
    const { ids, content } = question;
    if (!connection || connection.isDisposed || ids.length === TRIES) {
      this._questions.delete(question);
      return;
    }
    ids.push(tell(connection, content));
    setTimeout(
      () => {
        if (this._questions.has(question)) {
          this._send(question);
        }
      },
      FIRST_TRY * 2 ** (ids.length - 1)
    );
  }

  private _take(message: KernelMessage.IIOPubMessage): void {
    const { msg_id } = message.parent_header as { msg_id?: string };
    for (const question of this._questions) {
      if (isOurs(message) && question.ids.includes(msg_id ?? '')) {
        this._questions.delete(question);
        question.onAnswer(dataOf(message).cells as IShown[]);
        this.settle();
        return;
      }
    }
    this.message.emit(message);
  }

  private _connection: Kernel.IKernelConnection | null = null;
  private _lingering = 0;
  private readonly _questions = new Set<IQuestion>();
}

/** Send a message of ours on the control channel, where the kernel takes it while a cell runs. */
export function tell(
  kernel: Kernel.IKernelConnection,
  content: object
): string {
  const { clientId: session, username } = kernel;
  const message = KernelMessage.createMessage({
    ...{ channel: 'control', msgType: KIND, session, username, content }
  } as unknown as KernelMessage.IOptions<KernelMessage.IDebugRequestMsg>);
  kernel.sendControlMessage(message);
  return message.header.msg_id;
}

export function isOurs({ header, content }: KernelMessage.IMessage): boolean {
  return (
    (header.msg_type as string) === 'comm_msg' &&
    (content as { comm_id?: string }).comm_id === KIND
  );
}

export function dataOf({
  content
}: KernelMessage.IMessage): Record<string, unknown> {
  return (content as { data: Record<string, unknown> }).data;
}
