import type { IApiError, IInLine, IOffer } from '../model/contract';
import { trans } from '../model/trans';
import { formatMoment, joinFacts } from './format';

/** More GPUs are not named one by one. */
const MOST_NAMED = 4;

/** The place of who waits: `#3 in line · by 14:20`. */
export function sayLine(line: IInLine, now: number): string {
  const moment = momentOf(line, now);
  return joinFacts([
    trans.__('#%1 in line', line.place),
    moment &&
      (line.certain ? trans.__('by %1', moment) : trans.__('about %1', moment))
  ]);
}

/** What can be done instead of a start on GPUs that are taken. */
export function sayOffer(
  { kind, line, gpu_ids = [] }: IOffer,
  now: number
): string {
  switch (kind) {
    case 'wait': {
      if (!line) {
        return trans.__('Wait');
      }
      const moment = momentOf(line, now);
      if (!moment) {
        return trans.__('Wait (#%1 in line)', line.place);
      }
      return line.certain
        ? trans.__('Wait (#%1 in line, by %2)', line.place, moment)
        : trans.__('Wait (#%1 in line, about %2)', line.place, moment);
    }
    case 'free':
      return gpu_ids.length > MOST_NAMED
        ? trans.__('Start on the %1 free GPUs', gpu_ids.length)
        : trans._n(
            'Start on GPU %2',
            'Start on GPUs %2',
            gpu_ids.length,
            gpu_ids.join(', ')
          );
    case 'share':
      return trans.__('Share the GPUs');
    case 'job':
      return trans.__('Run as Job…');
  }
}

/**
 * What the server says of GPUs that are taken, in its parts: `No GPU is free.`, and `GPU 1 is leased by bob`,
 * `GPU 2 is used by python`.
 */
export function partsOf({ code, message }: IApiError): {
  head: string;
  parts: string[];
} {
  if (code !== 'gpus_taken') {
    return { head: message, parts: [] };
  }
  const found = /^([^:;(]+): (.+)$/s.exec(message);
  const head = found?.[1];
  const rest = found?.[2] ?? message;
  const parts = rest.replace(/\.$/, '').split('; ');
  if (head) {
    return { head: `${head}.`, parts };
  }
  return parts.length > 1
    ? { head: trans.__('These GPUs are not free.'), parts }
    : { head: message, parts: [] };
}

/** A moment that is over is none: what was assumed was wrong. */
function momentOf({ expected }: IInLine, now: number): string {
  return expected !== null && expected > now ? formatMoment(expected, now) : '';
}
