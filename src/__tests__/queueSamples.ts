import { DisposableDelegate } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IQueueModel, QueuePart } from '../model/queue';
import type {
  IAttempt,
  IFullJob,
  IJobDetails,
  IJobVerdict,
  IJobLines,
  ILinesQuery
} from '../model/detailsContract';
import { isFailure } from '../model/queueContract';
import type {
  IJob,
  IJobEvent,
  IJobs,
  IQueueRow,
  ITasks
} from '../model/queueContract';
import type {
  IJobPlan,
  IJobRequest,
  ISubmitField,
  ISubmitSchema
} from '../model/submitContract';

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
    spec: {},
    ...changes
  };
}

/** All of these tasks of an array. */
export function makeTasks(jobs: IJob[], changes: Partial<ITasks> = {}): ITasks {
  const states: ITasks['states'] = {};
  for (const { state } of jobs) {
    states[state] = (states[state] ?? 0) + 1;
  }
  const failed = jobs.filter(isFailure);
  failed.sort((a, b) => (a.ended ?? 0) - (b.ended ?? 0));
  return {
    jobs,
    count: jobs.length,
    states,
    last_failure: failed.at(-1) ?? null,
    ...changes
  };
}

function field(
  title: string,
  widget: string,
  changes: Partial<ISubmitField> = {}
): ISubmitField {
  return {
    title,
    description: `About ${title}.`,
    type: 'string',
    'x-widget': widget,
    ...changes
  };
}

/** Some of what the server names. */
export const SCHEMA: ISubmitSchema = {
  properties: {
    command: field('Command', 'command'),
    notebook: field('Notebook', 'notebook'),
    gpus: field('GPUs', 'gpus', {
      ...{ type: 'integer', minimum: 0, 'x-option': '--gpus' }
    }),
    time: field('Time limit', 'text', { 'x-option': '--time' }),
    chdir: field('Folder', 'text', { 'x-option': '--chdir' }),
    param: field('Parameters', 'parameters', { 'x-option': '--param' }),
    gpu_ids: field('Only these GPUs', 'gpu_ids', {
      ...{ 'x-advanced': true, 'x-option': '--gpu-ids' }
    }),
    venv: field('Virtual environment', 'text', {
      ...{ 'x-advanced': true, 'x-option': '--venv' }
    }),
    env: field('Variables', 'lines', {
      ...{ 'x-advanced': true, 'x-option': '--env' }
    }),
    hold: field('Hold', 'flag', { 'x-advanced': true, 'x-option': '--hold' })
  }
};

export function makePlan(changes: Partial<IJobPlan> = {}): IJobPlan {
  return {
    count: 1,
    commands: ['python train.py'],
    starts_now: true,
    gpus: [],
    place: null,
    expected: null,
    certain: true,
    reason: 'None',
    sentence: 'It would start now.',
    ...changes
  };
}

export function makeDetails(
  changes: Partial<IJobDetails> = {},
  job: Partial<IFullJob> = {}
): IJobDetails {
  return {
    job: {
      ...makeJob(),
      priority: 0,
      gpus: 2,
      gpu_uuids: [],
      gpu_ids: [],
      cpus: 0,
      memory: 0,
      submitted: 50,
      ends_by: null,
      spec: { argv: ['python', 'train.py'], cwd: '/work' },
      ...job
    },
    command: ['python', 'train.py'],
    output: '/work/jdist-12.out',
    error: null,
    notebook: null,
    request: { command: ['python', 'train.py'], chdir: '/work' },
    attempts: [],
    dependencies: [],
    variables: ['HOME', 'PATH'],
    ...changes
  };
}

export function makeLines(changes: Partial<IJobLines> = {}): IJobLines {
  return {
    offset: 0,
    next: 6,
    size: 6,
    found: true,
    text: 'hello\n',
    state: 'COMPLETED',
    ...changes
  };
}

/** One that has failed, and what it has used. */
export const ATTEMPT: IAttempt = {
  ...{ attempt: 1, state: 'FAILED', started: 100, ended: 160 },
  ...{ exit_code: 3, exit_signal: null },
  usage: {
    'GPU-0': {
      ...{ samples: 2, load_sum: 100, load_peak: 80, memory_peak: 2 ** 31 },
      curve: [
        [100, 20, 2 ** 30],
        [110, 80, 2 ** 31],
        [150, null, 2 ** 31]
      ]
    }
  }
};

/** A queue without a server. */
export class FakeQueue implements IQueueModel {
  constructor(changes: Partial<FakeQueue> = {}) {
    Object.assign(this, changes);
  }

  readonly changed = new Signal<this, void>(this);
  readonly happened = new Signal<this, readonly IJobEvent[]>(this);
  rows: IQueueModel['rows'] = null;
  ended: IQueueModel['ended'] = null;
  pending = 0;
  notices: IQueueModel['notices'] = [];
  error: IQueueModel['error'] = null;
  actionError: IQueueModel['actionError'] = null;
  readonly watched: QueuePart[] = [];
  readonly reload = jest.fn();
  readonly act = jest.fn(() => Promise.resolve());
  readonly move = jest.fn(() => Promise.resolve());
  readonly dismissError = jest.fn();
  readonly requests = {
    submitSchema: jest.fn(() => Promise.resolve(SCHEMA)),
    planJobs: jest.fn((_: IJobRequest) => Promise.resolve(makePlan())),
    tasks: jest.fn((_: string) => Promise.resolve(makeTasks([makeJob()]))),
    jobDetails: jest.fn((_: string) => Promise.resolve(makeDetails())),
    jobLines: jest.fn((_: string, _query: ILinesQuery) =>
      Promise.resolve(makeLines())
    ),
    jobVerdict: jest.fn((_: string): Promise<IJobVerdict> =>
      Promise.resolve({ launches: [] })
    ),
    submitJobs: jest.fn((_: IJobRequest) =>
      Promise.resolve<IJobs>({ jobs: [makeJob()], count: 1 })
    )
  };

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
