import { DisposableDelegate } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IQueueModel, QueuePart } from '../model/queue';
import type { IJob, IQueueRow } from '../model/queueContract';

export function makeRow(changes: Partial<IQueueRow> = {}): IQueueRow {
  return {
    id: '12',
    user: 'alice',
    name: 'train.py',
    kind: 'batch',
    state: 'PENDING',
    gpus: 2,
    gpu_uuids: [],
    limit: null,
    since: 100,
    ends_by: null,
    idle_since: null,
    reason: 'Resources',
    detail: 'It needs 2 GPUs; 1 is free.',
    expected: null,
    priority: 0,
    ...changes
  };
}

export function makeJob(changes: Partial<IJob> = {}): IJob {
  return {
    id: 12,
    label: '12',
    name: 'train.py',
    state: 'COMPLETED',
    reason: 'None',
    detail: '',
    limit: null,
    attempt: 1,
    started: 100,
    ended: 160,
    exit_code: 0,
    exit_signal: null,
    ...changes
  };
}

/** A queue without a server. */
export class FakeQueue implements IQueueModel {
  constructor(changes: Partial<FakeQueue> = {}) {
    Object.assign(this, changes);
  }

  readonly changed = new Signal<this, void>(this);
  rows: IQueueModel['rows'] = null;
  ended: IQueueModel['ended'] = null;
  error: IQueueModel['error'] = null;
  actionError: IQueueModel['actionError'] = null;
  readonly watched: QueuePart[] = [];
  readonly reload = jest.fn();
  readonly act = jest.fn(() => Promise.resolve());
  readonly dismissError = jest.fn();

  watch(what: QueuePart): DisposableDelegate {
    this.watched.push(what);
    return new DisposableDelegate(() => {
      this.watched.splice(this.watched.indexOf(what), 1);
    });
  }

  tell(changes: Partial<FakeQueue>): void {
    Object.assign(this, changes);
    this.changed.emit();
  }
}
