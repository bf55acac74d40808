import { Notification } from '@jupyterlab/apputils';

import type { JobRequests } from '../../model/queue';
import type { ITasks } from '../../model/queueContract';

/** What is shown of an array's tasks. */
export interface IArrayNews {
  message: string;
  type: 'info' | 'error';
  autoClose: number | false;
  actions: Notification.IAction[];
}

/** One notification for all tasks of an array, which is updated in place. */
export class ArrayNotice {
  constructor(
    private readonly _array: string,
    private readonly _requests: JobRequests,
    private readonly _say: (tasks: ITasks) => IArrayNews
  ) {}

  /** Tell how far it is; what comes while the server is asked is told of after it. */
  async update(): Promise<void> {
    this._isOld = true;
    if (this._isAsking) {
      return;
    }
    this._isAsking = true;
    try {
      while (this._isOld) {
        this._isOld = false;
        this._show(this._say(await this._requests.tasks(this._array)));
      }
    } catch {
      // The panel says that the server does not respond; the next news ask it again.
    } finally {
      this._isAsking = false;
    }
  }

  private _show({ message, type, ...options }: IArrayNews): void {
    const id = this._id;
    if (id && type !== this._type) {
      // An update would keep the colour of the other type.
      Notification.dismiss(id);
    }
    // One that was closed is shown again: there are news.
    if (!Notification.update({ id, message, type, ...options })) {
      this._id = Notification.emit(message, type, options);
      this._type = type;
    }
  }

  private _id = '';
  private _type = '';
  private _isAsking = false;
  private _isOld = false;
}
