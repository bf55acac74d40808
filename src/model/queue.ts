import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { asApiError } from './restClient';
import type { Client } from './restClient';
import type { IApiError, StreamMessage } from './contract';
import { prioritiesAfterMove } from './lineOrder';
import { ENDED, isOwnJob, ownLine } from './queueContract';
import type {
  IJob,
  IJobEvent,
  IJobs,
  IQueueRow,
  JobAction
} from './queueContract';
import { serverTime } from './serverTime';
import type { ITelemetry } from './telemetry';

export type QueuePart = 'all' | 'ends';

/** What the server is asked about certain jobs; all reject with an `IApiError`. */
export type JobRequests = Pick<
  Client,
  | 'submitSchema'
  | 'planJobs'
  | 'submitJobs'
  | 'tasks'
  | 'jobDetails'
  | 'jobLines'
  | 'jobVerdict'
>;

export type IQueueModel = Readonly<QueueModel>;

/** How long an ended job is shown, in seconds. */
const DAY = 86_400;
/** Milliseconds between two looks while a process is stopped. */
const AGAIN = 5_000;

/**
 * What runs and waits on the machine, and this user's jobs that have ended. It is read when somebody
 * watches, and again when the stream says that it has changed.
 */
export class QueueModel {
  constructor(
    private readonly _client: Client,
    received: ISignal<unknown, StreamMessage>,
    private readonly _topics: Pick<ITelemetry, 'watch'>
  ) {
    received.connect(this._onMessage, this);
    document.addEventListener('visibilitychange', () => {
      if (!this._topic) {
        this.reload();
      } else if (this._isOld) {
        // The stream has told of changes that nobody saw.
        void this._read();
      }
    });
  }

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);
  /** Emitted with what happens to own jobs while somebody watches. */
  readonly happened = new Signal<unknown, readonly IJobEvent[]>(this);
  /** First what runs, then what waits, in order; null until it is known. */
  rows: readonly IQueueRow[] | null = null;
  /** Own jobs that ended within a day, the newest end first; null until they are known. */
  ended: readonly IJob[] | null = null;
  /** How many own jobs have not started, if somebody watches. */
  pending = 0;
  /** Which processes of the queue are stopped, and what to do. */
  notices: readonly string[] = [];
  /** Why the queue could not be read. */
  error: IApiError | null = null;
  /** What went wrong with the last action. */
  actionError: IApiError | null = null;

  get requests(): JobRequests {
    return this._client;
  }

  /**
   * Follow the queue until the result is disposed of: all of it, or only the ends of own jobs, which
   * costs the server less.
   */
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

  /** Read it again after an error. */
  reload(): void {
    this._areEndsOld = true;
    void this._read();
  }

  /** Do something with own jobs, named by their labels. */
  act(action: JobAction, jobs: readonly string[]): Promise<void> {
    return this._change(
      jobs.map(job => () => this._client.changeJob(action, job))
    );
  }

  /** Have an own job that stands in line start at this place among them, from 0. */
  move(job: string, place: number): Promise<void> {
    const line = ownLine(this.rows ?? []);
    const from = line.findIndex(({ id }) => id === job);
    if (from < 0 || place < 0 || place >= line.length) {
      return Promise.resolve();
    }
    const changes = prioritiesAfterMove(
      line.map(({ priority }) => priority ?? 0),
      from,
      place
    );
    const requests = [...changes].map(
      ([index, priority]) =>
        () =>
          this._client.setPriority(line[index].id, priority)
    );
    return this._change(requests);
  }

  /** Send requests one after the other, until one fails. */
  private async _change(
    requests: readonly (() => Promise<IJobs>)[]
  ): Promise<void> {
    this.actionError = null;
    this.changed.emit();
    const left: string[] = [];
    try {
      for (const request of requests) {
        left.push(...((await request()).left ?? []));
      }
    } catch (error) {
      this.actionError = asApiError(error);
    }
    if (left.length) {
      const message = left.join(' ');
      this.actionError ??= { code: 'jobs_left', message, hint: '' };
    }
    this.changed.emit();
  }

  dismissError(): void {
    this.actionError = null;
    this.changed.emit();
  }

  /** What changes while an answer is on its way is read after it. */
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
        this.changed.emit();
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
      let ended = this.ended;
      if (this._areEndsOld) {
        this._areEndsOld = false;
        const { jobs } = await this._client.jobs(ENDED);
        ended = ofLastDay(jobs);
      }
      if (this._watchers.includes('all')) {
        const { rows, notices } = await this._client.queue();
        this.rows = rows;
        this.notices = notices;
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
      this.ended = ended;
      this.error = null;
    } catch (error) {
      this._areEndsOld = true;
      this.error = asApiError(error);
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
        this.pending = message.pending;
        // Although a hidden page reads nothing.
        this.changed.emit();
        void this._read();
        if (message.events.length) {
          this.happened.emit(message.events);
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

  private readonly _watchers: QueuePart[] = [];
  private _topic: IDisposable | null = null;
  private _timer = 0;
  /** The number of the newest event. */
  private _seq: number | null = null;
  /** States of pools, by id. */
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
