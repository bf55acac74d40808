import { deadRanks } from '../model/contract';
import type { IPool } from '../model/contract';
import type { ParkStage } from '../model/parking';
import { serverTime } from '../model/serverTime';
import { trans } from '../model/trans';
import {
  formatBytes,
  formatDuration,
  formatStopwatch,
  joinSentences,
  listRanks
} from './format';
import { sayLine } from './lineWords';

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** What stands in the pill of a pool. */
export function nameStage(stage: ParkStage): string {
  switch (stage) {
    case 'parking':
      return trans.__('Parking');
    case 'parked':
      return trans.__('Parked');
    case 'waiting':
      return trans.__('Waiting for GPUs');
    case 'resuming':
      return trans.__('Resuming');
  }
}

/** The same where there is room for a word or two: `parked`, `#2 in line`. */
export function sayStageShortly(stage: ParkStage, { parking }: IPool): string {
  switch (stage) {
    case 'parking':
      return trans.__('parking');
    case 'parked':
      return trans.__('parked');
    case 'waiting':
      return parking?.line
        ? sayLine(parking.line, serverTime())
        : trans.__('waiting for GPUs');
    case 'resuming':
      return trans.__('resuming');
  }
}

/** `Parked for 12 min: others can use GPUs 0, 1. What was there (41.0 GiB) is kept in …` */
export function sayParked(pool: IPool, now: number): string {
  const { since = now, nbytes = 0, leased = false } = pool.parked ?? {};
  const labels = pool.ranks.flatMap(({ gpu }) => (gpu ? [gpu.label] : []));
  const gpus = [...new Set(labels)];
  const args = [formatDuration(now - since), gpus.join(', ')];
  return joinSentences([
    leased
      ? trans._n(
          'Parked for %2, but GPU %3 is still leased to this pool.',
          'Parked for %2, but GPUs %3 are still leased to this pool.',
          gpus.length,
          ...args
        )
      : trans._n(
          'Parked for %2: others can use GPU %3.',
          'Parked for %2: others can use GPUs %3.',
          gpus.length,
          ...args
        ),
    nbytes > 0
      ? trans.__(
          'What was there (%1) is kept in the memory of this machine.',
          formatBytes(nbytes)
        )
      : ''
  ]);
}

/** Which ranks are gone; they are not replaced before the pool has its GPUs again. */
export function sayDeadParked(pool: IPool): string {
  const dead = pool.state === 'SUSPENDED' ? deadRanks(pool) : [];
  return dead.length
    ? trans._n(
        'Rank %2 died, and its variables are lost. Resume the pool to restart it.',
        'Ranks %2 died, and their variables are lost. Resume the pool to restart them.',
        dead.length,
        listRanks(dead.map(({ rank }) => rank))
      )
    : '';
}

/** When a pool gives its GPUs to others by itself: `parks after 20 min idle if others wait`. */
export function sayParkRule({ park_after }: IPool): string {
  if (typeof park_after !== 'number') {
    return '';
  }
  const isWhole = park_after % (park_after < HOUR ? MINUTE : HOUR) === 0;
  const format = isWhole ? formatDuration : formatStopwatch;
  return trans.__('parks after %1 idle if others wait', format(park_after));
}
