import type { IAttempt, IFullJob, IGpuUsage } from '../model/detailsContract';
import { ENDED } from '../model/queueContract';
import { trans } from '../model/trans';
import {
  formatBytes,
  formatDuration,
  formatMoment,
  joinFacts,
  joinSentences
} from './format';
import { sayEnd, sayExit, sayReason } from './queueWords';

/** How a job stands, or how it ended, in a sentence. */
export function sayJob(job: IFullJob, now: number): string {
  const { state, detail } = job;
  if (ENDED.includes(state)) {
    // Of a failure, the detail is part of the sentence.
    const isSaid = state === 'FAILED' || state === 'NODE_FAIL';
    return joinSentences([sayEnd(job), isSaid ? '' : detail]);
  }
  if (state === 'PENDING') {
    return detail || sayReason(job.reason, job.gpus > 0);
  }
  if (job.started === null) {
    return trans.__('Starting');
  }
  return joinFacts([
    trans.__('Running %1', formatDuration(now - job.started)),
    job.ends_by !== null &&
      trans.__('until %1', formatMoment(job.ends_by, now)),
    detail
  ]);
}

/** `GPU load 81 %, at most 99 %`; nothing where it was never read. */
export function sayLoad(usage: readonly IGpuUsage[]): string {
  const samples = usage.reduce((sum, gpu) => sum + gpu.samples, 0);
  const peak = Math.max(...usage.map(gpu => gpu.load_peak ?? -1));
  if (!samples || peak < 0) {
    return '';
  }
  const mean = usage.reduce((sum, gpu) => sum + gpu.load_sum, 0) / samples;
  return trans.__('GPU load %1 %, at most %2 %', Math.round(mean), peak);
}

/** `FAILED exit code 1 · 14:02 · 12 min · GPU load 81 %, at most 99 % · memory up to 31.2 GiB`. */
export function sayAttempt(attempt: IAttempt, now: number): string {
  const { started, ended } = attempt;
  const usage = Object.values(attempt.usage);
  const memory = Math.max(...usage.map(gpu => gpu.memory_peak));
  return joinFacts([
    sayExit({ ...attempt, state: attempt.state ?? 'RUNNING' }),
    started !== null && trans.__('started %1', formatMoment(started, now)),
    started !== null && ended !== null && formatDuration(ended - started),
    sayLoad(usage),
    memory > 0 && trans.__('memory up to %1', formatBytes(memory))
  ]);
}
