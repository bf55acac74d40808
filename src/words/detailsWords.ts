import type { TranslationBundle } from '@jupyterlab/translation';

import type { IAttempt, IFullJob, IJobDetails } from '../model/detailsContract';
import { ENDED } from '../model/queueContract';
import type { IJobRequest } from '../model/submitContract';
import { formatBytes, formatDuration, joinFacts } from './format';
import { sayEnd, sayReason } from './queueWords';

/** How a job stands, in a sentence. */
export function sayJob(
  job: IFullJob,
  now: number,
  trans: TranslationBundle
): string {
  if (ENDED.includes(job.state)) {
    return job.detail && job.state !== 'FAILED'
      ? `${sayEnd(job, trans)} ${job.detail}`
      : sayEnd(job, trans);
  }
  if (job.state === 'PENDING') {
    return job.detail || sayReason(job.reason, job.gpus > 0, trans);
  }
  return job.started === null
    ? trans.__('Starting')
    : trans.__('Running %1', formatDuration(now - job.started, trans));
}

/** `GPU load 81 %, at most 99 %`, `memory up to 31.2 GiB`; nothing where no GPU was read. */
export function sayUse({ usage }: IAttempt, trans: TranslationBundle): string {
  const seen = Object.values(usage);
  const samples = seen.reduce((sum, gpu) => sum + gpu.samples, 0);
  if (!samples) {
    return '';
  }
  const mean = seen.reduce((sum, gpu) => sum + gpu.load_sum, 0) / samples;
  const peak = Math.max(...seen.map(gpu => gpu.load_peak ?? -1));
  const memory = Math.max(...seen.map(gpu => gpu.memory_peak));
  return joinFacts([
    peak >= 0 &&
      trans.__('GPU load %1 %, at most %2 %', Math.round(mean), peak),
    trans.__('memory up to %1', formatBytes(memory, trans))
  ]);
}

/** What asks for a job like this one. */
export function requestLike({ job }: IJobDetails): IJobRequest {
  const { spec } = job;
  const request: IJobRequest = { chdir: spec.cwd, name: job.name };
  if (spec.notebook?.startsWith('/')) {
    request.notebook = spec.notebook;
    // Behind the names of the copy and of the output.
    request.parameter = spec.argv.filter(word => /^[A-Za-z_]\w*=/.test(word));
  } else {
    request.command = spec.argv;
  }
  const params = Object.entries(job.params);
  if (params.length) {
    request.param = params.map(([name, value]) => `${name}=${value}`);
  }
  if (job.gpus) {
    request.gpus = job.gpus;
  } else if (job.cpus !== 1) {
    request.cpus = job.cpus;
  }
  if (job.limit !== null) {
    request.time = String(Math.max(1, Math.ceil(job.limit / 60)));
  }
  if (job.memory) {
    request.mem = `${Math.ceil(job.memory / 2 ** 20)}M`;
  }
  if (spec.setup?.length) {
    request.setup = spec.setup;
  }
  if (spec.torchrun) {
    request.torchrun = true;
  }
  return request;
}
