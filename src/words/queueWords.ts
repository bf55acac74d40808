import { PathExt } from '@jupyterlab/coreutils';

import { ENDED, isFailure, isOwnJob } from '../model/queueContract';
import type { IJob, IQueueRow, ITasks, JobState } from '../model/queueContract';
import { trans } from '../model/trans';
import {
  formatDuration,
  formatMoment,
  joinFacts,
  joinSentences
} from './format';

/** Characters of a name in a notification. */
const LONGEST = 30;

/** `12 train.py`; of others `bob · train.ipynb`. */
export function nameRow(row: IQueueRow, isOwn: boolean): string {
  const name = row.kind === 'pool' ? PathExt.basename(row.name) : row.name;
  if (isOwnJob(row)) {
    return nameJob(row.id, name);
  }
  if (row.kind === 'reservation') {
    return joinFacts([row.user || trans.__('Reserved'), name]);
  }
  return isOwn
    ? name || row.id
    : joinFacts([row.user || trans.__('Another program'), name]);
}

/** `12 train.py`. */
export function nameJob(label: string, name: string): string {
  return name ? `${label} ${name}` : label;
}

/** `GPUs 0–3` of what runs, by their labels; `2 GPUs` of what waits. */
export function sayGpus({ gpus }: IQueueRow, labels: string | null): string {
  if (!gpus) {
    return trans.__('CPU');
  }
  return labels === null
    ? trans._n('%1 GPU', '%1 GPUs', gpus)
    : trans._n('GPU %2', 'GPUs %2', gpus, labels);
}

/** `Running 12 min`, `Idle 3 h`, `Waits for GPUs`, `Held`. */
export function sayRow(row: IQueueRow, now: number): string {
  if (row.kind === 'reservation') {
    return trans.__('Reservation');
  }
  switch (row.state) {
    case 'PENDING':
      return sayReason(row.reason, row.gpus > 0);
    case 'CONFIGURING':
      return trans.__('Starting');
    case 'COMPLETING':
      return trans.__('Ending');
  }
  if (row.kind === 'pool' && row.idle_since !== null) {
    return trans.__('Idle %1', formatDuration(now - row.idle_since));
  }
  return row.since === null
    ? trans.__('Running')
    : trans.__('Running %1', formatDuration(now - row.since));
}

/** Slurm's reason in a few words. */
export function sayReason(reason: string, needsGpus: boolean): string {
  switch (reason) {
    case 'Resources':
      return needsGpus
        ? trans.__('Waits for GPUs')
        : trans.__('Waits for cores');
    case 'Dependency':
      return trans.__('Waits for a job');
    case 'DependencyNeverSatisfied':
      return trans.__('Dependency failed');
    case 'BeginTime':
      return trans.__('Begins later');
    case 'JobHeldUser':
      return trans.__('Held');
    case 'JobHeldFailures':
      return trans.__('Held after failures');
    case 'JobArrayTaskLimit':
      return trans.__('Array limit');
    case 'BadConstraints':
      return trans.__('Cannot run here');
    case 'ReqNodeNotAvail':
      return trans.__('GPU not available');
    case 'QOSMaxGRESPerUser':
    case 'AssocGrpGRES':
      return trans.__('GPU limit');
    case 'QOSMaxJobsPerUserLimit':
    case 'AssocMaxJobsLimit':
    case 'AssocGrpJobsLimit':
      return trans.__('Job limit');
    default:
      return trans.__('Waits in line');
  }
}

/** Of what waits `#2 · by 14:20`, of what runs `until 15:04`, of a reservation `from 18:00`. */
export function sayWhen(
  { kind, state, ends_by, expected }: IQueueRow,
  place: number | undefined,
  now: number
): string {
  if (state !== 'PENDING') {
    return ends_by === null
      ? ''
      : trans.__('until %1', formatMoment(ends_by, now));
  }
  const moment = expected && formatMoment(expected.start, now);
  if (kind === 'reservation') {
    return trans.__('from %1', moment);
  }
  return joinFacts([
    place !== undefined && trans.__('#%1', place),
    moment &&
      (expected?.certain
        ? trans.__('by %1', moment)
        : trans.__('about %1', moment))
  ]);
}

/** What the short words of a row mean. */
export function explainRow(
  { state, detail }: IQueueRow,
  place: number | undefined
): string {
  const line = place === undefined ? '' : trans.__('Place %1 in line.', place);
  return [state === 'PENDING' && line, detail].filter(Boolean).join('\n');
}

/** How a job ended, in Slurm's words: `FAILED exit code 1`, `TIMEOUT`. */
export function sayExit({
  state,
  exit_code,
  exit_signal
}: Pick<IJob, 'state' | 'exit_code' | 'exit_signal'>): string {
  if (state === 'FAILED' && exit_signal !== null) {
    return trans.__('%1 signal %2', state, exit_signal);
  }
  return state === 'FAILED' && exit_code !== null
    ? trans.__('%1 exit code %2', state, exit_code)
    : state;
}

/** `12 min`; nothing of a job that never ran. */
export function sayRunTime({ started, ended }: IJob): string {
  return started === null || ended === null
    ? ''
    : formatDuration(ended - started);
}

/** Of a long name what leaves space in a notification for the other words. */
export function cutName(name: string): string {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

/** One's own job has ended, in a sentence. */
export function sayEnd(job: IJob): string {
  const name = nameJob(job.label, job.name);
  switch (job.state) {
    case 'COMPLETED':
      return trans.__('Job %1 has completed.', name);
    case 'CANCELLED':
      return trans.__('Job %1 was cancelled.', name);
    case 'TIMEOUT':
      return trans.__('Job %1 reached its time limit.', name);
    case 'OUT_OF_MEMORY':
      return trans.__('Job %1 ran out of memory.', name);
    default:
      return trans.__('Job %1 failed: %2', name, job.detail || job.state);
  }
}

/** `Job 40 train.py: 3 of 12 tasks completed, 2 running.`, and what has failed. */
export function sayArray(
  array: string,
  { jobs, count, states, last_failure: last }: ITasks
): string {
  const name = nameJob(array, cutName(jobs[0]?.name ?? ''));
  const total = (isOne: (state: JobState) => boolean) =>
    Object.entries(states).reduce(
      (sum, [state, tasks]) => sum + (isOne(state as JobState) ? tasks : 0),
      0
    );
  const completed = states.COMPLETED ?? 0;
  const running = total(state => state !== 'PENDING' && !ENDED.includes(state));
  const failed = total(state => isFailure({ state }));
  return joinSentences([
    running
      ? trans.__(
          'Job %1: %2 of %3 tasks completed, %4 running.',
          ...[name, completed, count, running]
        )
      : trans.__(
          'Job %1: %2 of %3 tasks completed.',
          ...[name, completed, count]
        ),
    failed > 1 ? trans.__('%1 tasks failed.', failed) : '',
    last ? sayEnd({ ...last, name: '' }) : ''
  ]);
}
