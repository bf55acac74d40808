import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './client';
import type { Client } from './client';
import type { IApiError, StreamMessage } from './contract';
import type { Topic } from './gpuContract';
import { prioritiesAfterMove } from './lineOrder';
import type { IQueueModel, JobRequests, QueuePart } from './queue';
import { ENDED, isOwnJob, ownLine } from './queueContract';
import type {
  IJob,
  IJobEvent,
  IJobs,
  IQueueRow,
  JobAction
} from './queueContract';
import { serverTime } from './serverTime';

/** Seconds for which an ended job is shown. */
const DAY = 86_400;
/** Milliseconds between two looks while a process is stopped. */
const AGAIN = 5_000;

/**
 * Reads the queue once, and again when the stream says that it has changed.
 */
export class QueueModel implements IQueueModel {
  constructor(options: QueueModel.IOptions) {
    this._client = options.client;
    this._topics = options.topics;
    options.received.connect(this._onMessage, this);
    document.addEventListener('visibilitychange', () => {
      if (!this._topic) {
        this.reload();
      } else if (this._isOld) {
        // The stream has told of changes that nobody saw.
        void this._read();
      }
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get happened(): ISignal<this, readonly IJobEvent[]> {
    return this._happened;
  }

  get requests(): JobRequests {
    return this._client;
  }

  get rows(): readonly IQueueRow[] | null {
    return this._rows;
  }

  get ended(): readonly IJob[] | null {
    return this._ended;
  }

  get pending(): number {
    return this._pending;
  }

  get notices(): readonly string[] {
    return this._notices;
  }

  get error(): IApiError | null {
    return this._error;
  }

  get actionError(): IApiError | null {
    return this._actionError;
  }

  watch(what: QueuePart): IDisposable {
    this._watchers.push(what);
    this.reload();
    return new DisposableDelegate(() => {
      this._watchers.splice(this._watchers.indexOf(what), 1);
      if (!this._watchers.length) {
        this._topic?.dispose();
        this._topic = null;
      }
    });
  }

  reload(): void {
    this._areEndsOld = true;
    void this._read();
  }

  act(action: JobAction, jobs: readonly string[]): Promise<void> {
    return this._change(
      jobs.map(job => () => this._client.changeJob(action, job))
    );
  }

  move(job: string, place: number): Promise<void> {
    const line = ownLine(this._rows ?? []);
    const from = line.findIndex(({ id }) => id === job);
    if (from < 0 || place < 0 || place >= line.length) {
      return Promise.resolve();
    }
    const changes = prioritiesAfterMove(
      line.map(({ priority }) => priority ?? 0),
      from,
      place
    );
    return this._change(
      [...changes].map(
        ([index, priority]) =>
          () =>
            this._client.setPriority(line[index].id, priority)
      )
    );
  }

  /** One after the other; the first failure ends it. */
  private async _change(
    requests: readonly (() => Promise<IJobs>)[]
  ): Promise<void> {
    this._actionError = null;
    this._changed.emit();
    const left: string[] = [];
    try {
      for (const request of requests) {
        left.push(...((await request()).left ?? []));
      }
    } catch (error) {
      this._actionError = asApiError(error);
    }
    if (left.length) {
      const message = left.join(' ');
      this._actionError ??= { code: 'jobs_left', message, hint: '' };
    }
    this._changed.emit();
  }

  dismissError(): void {
    this._actionError = null;
    this._changed.emit();
  }

  /** What comes while an answer is on its way is asked for after it. */
  private async _read(): Promise<void> {
    this._isOld = true;
    if (this._isReading) {
      return;
    }
    this._isReading = true;
    try {
      while (this._isOld && this._mayRead()) {
        this._isOld = false;
        await this._readOnce();
        this._changed.emit();
      }
    } finally {
      this._isReading = false;
    }
  }

  private _mayRead(): boolean {
    return this._isConnected && !document.hidden && this._watchers.length > 0;
  }

  private async _readOnce(): Promise<void> {
    try {
      let ended = this._ended;
      if (this._areEndsOld) {
        this._areEndsOld = false;
        const { jobs } = await this._client.jobs(ENDED);
        ended = ofLastDay(jobs);
      }
      if (this._watchers.includes('all')) {
        const { rows, notices } = await this._client.queue();
        this._rows = rows;
        this._notices = notices;
        clearTimeout(this._timer);
        if (notices.length) {
          // Nothing tells that a stopped process goes on.
          this._timer = window.setTimeout(() => this._readRows(), AGAIN);
        }
        // One that was queued again between the two answers has not ended.
        const alive = new Set(rows.filter(isOwnJob).map(({ id }) => id));
        ended = ended?.filter(job => !alive.has(job.label)) ?? null;
      }
      // Not before: what is drawn meanwhile would show a job twice.
      this._ended = ended;
      this._error = null;
    } catch (error) {
      this._areEndsOld = true;
      this._error = asApiError(error);
      return;
    }
    // Not before: the server refuses all topics to those who may not read the queue.
    if (this._watchers.length) {
      this._topic ??= this._topics.watch('jobs');
    }
  }

  private _onMessage(_: unknown, message: StreamMessage): void {
    switch (message.type) {
      case 'pools':
        // The first message of a connection.
        this._isConnected = true;
        this._seq = null;
        this._states = new Map(
          message.pools.map(({ id, state }) => [id, state])
        );
        if (!this._topic) {
          this.reload();
        }
        return;
      case 'jobs':
        this._areEndsOld ||= message.seq !== this._seq;
        this._seq = message.seq;
        this._pending = message.pending;
        // Although a hidden page reads nothing.
        this._changed.emit();
        void this._read();
        if (message.events.length) {
          this._happened.emit(message.events);
        }
        return;
      case 'pool':
        if (this._states.get(message.pool.id) !== message.pool.state) {
          this._states.set(message.pool.id, message.pool.state);
          this._readRows();
        }
        return;
      case 'pool_removed':
        this._states.delete(message.id);
        return;
      case 'gpus':
        // Somebody may have taken or released some.
        this._readRows();
    }
  }

  private _readRows(): void {
    if (this._topic && this._watchers.includes('all')) {
      void this._read();
    }
  }

  private readonly _client: Client;
  private readonly _topics: QueueModel.ITopics;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _happened = new Signal<this, readonly IJobEvent[]>(this);
  private readonly _watchers: QueuePart[] = [];
  private _topic: IDisposable | null = null;
  private _rows: readonly IQueueRow[] | null = null;
  private _ended: readonly IJob[] | null = null;
  private _notices: readonly string[] = [];
  private _timer = 0;
  private _pending = 0;
  private _error: IApiError | null = null;
  private _actionError: IApiError | null = null;
  /** The number of the newest event that we know of. */
  private _seq: number | null = null;
  /** Of the pools, by id. */
  private _states = new Map<string, string>();
  private _isConnected = false;
  private _isReading = false;
  private _isOld = false;
  private _areEndsOld = true;
}

function ofLastDay(jobs: readonly IJob[]): IJob[] {
  const since = serverTime() - DAY;
  return jobs.filter(({ ended }) => (ended ?? 0) > since);
}

function asApiError(error: unknown): IApiError {
  if (!(error instanceof ApiError)) {
    throw error;
  }
  return error;
}

export namespace QueueModel {
  /** Who asks the stream for topics. */
  export interface ITopics {
    watch(topic: Topic): IDisposable;
  }

  export interface IOptions {
    client: Client;
    received: ISignal<unknown, StreamMessage>;
    topics: ITopics;
  }
}
