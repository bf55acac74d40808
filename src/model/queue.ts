import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

import type { Client } from './client';
import type { IApiError } from './contract';
import type { IJob, IJobEvent, IQueueRow, JobAction } from './queueContract';

/**
 * What runs and waits on the machine, and the jobs of this user that have ended.
 */
export interface IQueueModel {
  /** Emitted after any change below. */
  readonly changed: ISignal<IQueueModel, void>;
  /** Emitted with what happens to own jobs while somebody watches. */
  readonly happened: ISignal<IQueueModel, readonly IJobEvent[]>;
  /** First what runs, then what waits, in order; null until it is known. */
  readonly rows: readonly IQueueRow[] | null;
  /** Own jobs that ended within a day, the newest end first; null until they are known. */
  readonly ended: readonly IJob[] | null;
  /** How many own jobs have not started, as far as is known while somebody watches. */
  readonly pending: number;
  /** Which processes of the queue are stopped, and what to do. */
  readonly notices: readonly string[];
  /** Why the queue could not be read. */
  readonly error: IApiError | null;
  /** What went wrong with the last action. */
  readonly actionError: IApiError | null;
  readonly requests: JobRequests;
  /**
   * Follow the queue until the answer is disposed of: all of it, or only the ends of own jobs, which
   * costs the server less.
   */
  watch(what: QueuePart): IDisposable;
  /** Read it again after an error. */
  reload(): void;
  /** Do something with own jobs, named by their labels. */
  act(action: JobAction, jobs: readonly string[]): Promise<void>;
  /** Have an own job that stands in line start at this place among them, from 0. */
  move(job: string, place: number): Promise<void>;
  dismissError(): void;
}

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
>;
