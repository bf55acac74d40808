import type { ICellRun } from '../model/cells';
import type { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { findLongWait } from '../model/waiting';
import {
  formatMoment,
  formatRanks,
  formatStopwatch,
  joinSentences
} from '../words/format';
import { formatClock } from './scale';

/** Seconds after which a collective counts as a wait. */
const PATIENCE = 4;

/** The label of a chip, the most important part first, and its tooltip. */
export interface ICellWords {
  parts: string[];
  title: string;
}

/** `[6]`, `3 min 51 s`, `ranks 0–3` */
export function sayCell(
  run: ICellRun,
  now: number,
  pools: IPoolsModel
): ICellWords {
  const { cell, start, end, stretches, name } = run;
  const count = stretches.length;
  const seconds = (end ?? now) - start;
  const took = seconds < 1 ? trans.__('< 1 s') : formatStopwatch(seconds);
  const ranks = formatRanks(stretches.map(({ rank }) => rank));
  const wait = end === null ? findWait(run, now, pools) : null;
  return {
    parts: [
      cell === null ? '' : `[${cell}]`,
      end === null ? trans.__('running %1', took) : took,
      wait
        ? trans._n(
            'rank %2 waits for %3',
            'ranks %2 wait for %3',
            wait.count,
            wait.waiting,
            wait.missing
          )
        : trans._n('rank %2', 'ranks %2', count, ranks)
    ].filter(Boolean),
    title: joinSentences([
      sayWhen(run, now, took, ranks),
      wait
        ? trans._n(
            'Rank %2 waits for %3.',
            'Ranks %2 wait for %3.',
            wait.count,
            wait.waiting,
            wait.missing
          )
        : '',
      name && trans.__('Click to go to it in %1.', name)
    ])
  };
}

function sayWhen(
  { cell, start, end, stretches }: ICellRun,
  now: number,
  took: string,
  ranks: string
): string {
  const count = stretches.length;
  if (end === null) {
    // Without the duration: screen readers would read it again each second.
    const since = formatMoment(start, now);
    return cell === null
      ? trans._n(
          'A cell has been running on rank %2 since %3.',
          'A cell has been running on ranks %2 since %3.',
          count,
          ranks,
          since
        )
      : trans._n(
          'Cell [%2] has been running on rank %3 since %4.',
          'Cell [%2] has been running on ranks %3 since %4.',
          count,
          cell,
          ranks,
          since
        );
  }
  const span = `${formatClock(start, true)}–${formatClock(end, true)}`;
  return cell === null
    ? trans._n(
        'A cell ran for %2 on rank %3, %4.',
        'A cell ran for %2 on ranks %3, %4.',
        count,
        took,
        ranks,
        span
      )
    : trans._n(
        'Cell [%2] ran for %3 on rank %4, %5.',
        'Cell [%2] ran for %3 on ranks %4, %5.',
        count,
        cell,
        took,
        ranks,
        span
      );
}

/** What is said of cells that are too narrow to be shown one by one. */
export function sayCells(runs: readonly ICellRun[]): ICellWords {
  const last = runs[runs.length - 1];
  return {
    parts: [trans._n('%1 cell', '%1 cells', runs.length)],
    title: trans._n(
      '%1 cell, %2–%3. Click to zoom in.',
      '%1 cells, %2–%3. Click to zoom in.',
      runs.length,
      formatClock(runs[0].start, true),
      formatClock(last.end ?? last.start, true)
    )
  };
}

function findWait(
  { pool: id }: ICellRun,
  now: number,
  { pools, telemetry }: IPoolsModel
): { count: number; waiting: string; missing: string } | null {
  const pool = pools.get(id);
  const wait = pool && findLongWait(pool, telemetry, now, PATIENCE);
  if (!wait?.absences.length) {
    return null;
  }
  const waiting = wait.waits.flatMap(({ ranks }) => ranks);
  const missing = wait.absences.flatMap(({ ranks }) => ranks);
  return {
    count: waiting.length,
    waiting: formatRanks(waiting),
    missing: formatRanks(missing)
  };
}
