import { PathExt } from '@jupyterlab/coreutils';

import type { IJob } from '../model/queueContract';
import { joinWords } from '../model/shellWords';
import type {
  IJobPlan,
  IJobRequest,
  ISubmitSchema
} from '../model/submitContract';
import { trans } from '../model/trans';
import { formatMoment, joinFacts } from './format';
import { nameJob, sayReason } from './queueWords';

/** `Starts now on GPUs 0–1`, `#3 in line · by 14:20 at the latest`, `Held`; of several jobs, of the first. */
export function sayPlan(
  plan: IJobPlan,
  /** The GPUs that it would get now, by their labels. */
  gpus: string,
  now: number
): string {
  const { count } = plan;
  const isOne = count === 1;
  if (plan.starts_now && plan.gpus.length) {
    return isOne
      ? trans._n(
          'Starts now on GPU %2',
          'Starts now on GPUs %2',
          plan.gpus.length,
          gpus
        )
      : trans._n(
          '%3 jobs. The first starts now on GPU %2.',
          '%3 jobs. The first starts now on GPUs %2.',
          plan.gpus.length,
          gpus,
          count
        );
  }
  if (plan.starts_now) {
    return isOne
      ? trans.__('Starts now')
      : trans.__('%1 jobs. The first starts now.', count);
  }
  const jobs = isOne ? '' : trans.__('%1 jobs', count);
  if (plan.place === null) {
    return joinFacts([jobs, sayReason(plan.reason, true)]);
  }
  const moment = plan.expected && formatMoment(plan.expected, now);
  return joinFacts([
    jobs,
    isOne
      ? trans.__('#%1 in line', plan.place)
      : trans.__('the first is #%1 in line', plan.place),
    !moment
      ? trans.__('nobody knows when it starts')
      : plan.certain
        ? trans.__('by %1 at the latest', moment)
        : trans.__('about %1', moment)
  ]);
}

/** Warns of `{lr}` in a command without such a parameter; of the shell's `${LR}` not. */
export function sayLeftBraces({ commands }: IJobPlan): string {
  const found = commands.join(' ').match(/(?<!\$)\{[A-Za-z_]\w*\}/g) ?? [];
  const names = [...new Set(found)];
  return names.length
    ? trans._n(
        '%2 is passed as it is: there is no parameter of this name.',
        '%2 are passed as they are: there are no parameters of these names.',
        names.length,
        names.join(', ')
      )
    : '';
}

/** Fields of a request that are no options of the same name. */
const NO_OPTIONS = ['command', 'notebook', 'parameter', 'chdir'];

/** The options of `jdist submit`, in the order of the form; what it has not comes last. */
export function jobOptions(
  request: IJobRequest,
  properties: ISubmitSchema['properties'],
  folder: string
): string[] {
  const words: string[] = [];
  const others = Object.keys(request).filter(
    name => !(name in properties) && !NO_OPTIONS.includes(name)
  );
  for (const name of [...Object.keys(properties), ...others]) {
    // What the form has not is called there as it is here.
    const option =
      name in properties
        ? properties[name]['x-option']
        : `--${name.replaceAll('_', '-')}`;
    const value = name === 'chdir' ? (request.chdir ?? '') : request[name];
    if (option === undefined || value === undefined) {
      continue;
    }
    if (value === true) {
      words.push(option);
    } else if (Array.isArray(value)) {
      value.forEach(one => words.push(option, String(one)));
    } else if (name === 'chdir') {
      const path = relativeTo(folder, String(value));
      words.push(...(path === '' ? [] : [option, path]));
    } else if (name === 'venv') {
      words.push(option, relativeTo(folder, String(value)));
    } else {
      words.push(option, String(value));
    }
  }
  return words;
}

/**
 * The command that asks for the same jobs in a folder: `jdist submit --gpus 2 python train.py`. Paths
 * are relative to the server's root, and in the command to the folder.
 */
export function jobCommand(
  request: IJobRequest,
  { properties }: ISubmitSchema,
  folder: string
): string {
  const words = [
    'jdist',
    request.notebook ? 'notebook' : 'submit',
    ...jobOptions(request, properties, folder)
  ];
  if (request.notebook) {
    request.parameter?.forEach(parameter => words.push('-P', parameter));
    words.push(relativeTo(folder, request.notebook));
  } else {
    const [program = '', ...rest] = request.command ?? [];
    words.push(
      program.includes('/') ? relativeTo(folder, program) : program,
      ...rest
    );
  }
  return joinWords(words);
}

function relativeTo(folder: string, path: string): string {
  return path.startsWith('/') ? path : PathExt.relative(folder, path);
}

/** `Job 12 train.py is in the queue.` */
export function saySubmitted(jobs: readonly IJob[]): string {
  const [first, last] = [jobs[0], jobs[jobs.length - 1]];
  return jobs.length > 1
    ? trans.__('Jobs %1 … %2 are in the queue.', first.label, last.label)
    : trans.__('Job %1 is in the queue.', nameJob(first.label, first.name));
}
