/** What the server says of the queue, exactly as it comes over the wire. */

export type JobState =
  | 'PENDING'
  | 'CONFIGURING'
  | 'RUNNING'
  | 'COMPLETING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'TIMEOUT'
  | 'OUT_OF_MEMORY'
  | 'NODE_FAIL';

/** A job or a pool that runs or waits, of any user. */
export interface IQueueRow {
  /** `12` or `12_3` of a job; the id of a pool. */
  id: string;
  user: string;
  /** Of the job, or the notebook. */
  name: string;
  /** `other`: a program that locks a GPU itself. */
  kind: 'batch' | 'pool' | 'reservation' | 'other';
  state: JobState;
  gpus: number;
  /** Those that it has. */
  gpu_uuids: string[];
  /** Seconds. */
  limit: number | null;
  /** Unix seconds: when it started, or, while it waits, since when it does. */
  since: number | null;
  ends_by: number | null;
  /** Since when no cell has run in a pool. */
  idle_since: number | null;
  /** Why it waits, in Slurm's words. */
  reason: string;
  /** One sentence on this. */
  detail: string;
  expected: {
    start: number;
    /** Whether it starts then at the latest. */
    certain: boolean;
  } | null;
  /** Null unless it is a job of this user. */
  priority: number | null;
}

export interface IQueue {
  rows: IQueueRow[];
  count: number;
  /** Which processes of the queue are stopped, and what to do. */
  notices: string[];
}

/** A job of this user; there is more of it than we need. */
export interface IJob {
  id: number;
  /** `12`, or `40_3` for a task of an array. */
  label: string;
  name: string;
  state: JobState;
  reason: string;
  detail: string;
  /** Seconds. */
  limit: number | null;
  attempt: number;
  started: number | null;
  ended: number | null;
  exit_code: number | null;
  exit_signal: number | null;
  spec: {
    /** The one that it runs. */
    notebook?: string;
  };
}

export interface IJobs {
  jobs: IJob[];
  count: number;
  /** A sentence about each job that was not changed. */
  left?: string[];
  /** Sentences about options of a script that have no meaning here, and about stopped processes. */
  notices?: string[];
}

/** How far the tasks of an array are. */
export interface ITasks extends IJobs {
  states: Partial<Record<JobState, number>>;
  /** The one that failed last. */
  last_failure: IJob | null;
}

export interface IJobEvent {
  seq: number;
  job: number;
  label: string;
  name: string;
  at: number;
  was: JobState | null;
  state: JobState;
  reason: string;
}

/** Something in the queue has changed, not always with an event. */
export interface IJobsMessage {
  type: 'jobs';
  /** The number of the newest event. */
  seq: number;
  events: IJobEvent[];
  /** How many own jobs wait. */
  pending: number;
}

/** What can be done with jobs. */
export type JobAction = 'hold' | 'release' | 'cancel' | 'requeue';

/** States that only a requeue changes. */
export const ENDED: readonly JobState[] = [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'TIMEOUT',
  'OUT_OF_MEMORY',
  'NODE_FAIL'
];

export function isFailure({ state }: Pick<IJob, 'state'>): boolean {
  return (
    ENDED.includes(state) && state !== 'COMPLETED' && state !== 'CANCELLED'
  );
}

/** The array of a task, `40` of `40_3`; null for a job that is none. */
export function arrayOf({ label }: Pick<IJob, 'label'>): string | null {
  const place = label.indexOf('_');
  return place < 0 ? null : label.slice(0, place);
}

/** Whether a row is a job of this user. */
export function isOwnJob({ priority }: IQueueRow): boolean {
  return priority !== null;
}

export function isHeld({ reason }: IQueueRow): boolean {
  return reason === 'JobHeldUser' || reason === 'JobHeldFailures';
}

/** The UUIDs of the GPUs that jobs have, of all users. */
export function gpusOfJobs(rows: readonly IQueueRow[] | null): string[] {
  const jobs = rows?.filter(({ kind }) => kind === 'batch') ?? [];
  return jobs.flatMap(({ gpu_uuids }) => gpu_uuids);
}

/** Reasons of those that stand in line: the others wait for something else, wherever they stand. */
const IN_LINE = ['', 'None', 'Resources', 'Priority'];

/** The places in line, from 1, of those that wait for GPUs, cores or memory only. */
export function placesInLine(
  rows: readonly IQueueRow[]
): ReadonlyMap<IQueueRow, number> {
  const line = rows.filter(
    ({ state, reason }) => state === 'PENDING' && IN_LINE.includes(reason)
  );
  return new Map(line.map((row, index) => [row, index + 1]));
}

/** The jobs of this user among them, whose order is the user's own affair. */
export function ownLine(rows: readonly IQueueRow[]): IQueueRow[] {
  return [...placesInLine(rows).keys()].filter(isOwnJob);
}
