import type { TranslationBundle } from '@jupyterlab/translation';

import { findLongWait } from '../model/waiting';
import { formatRanks, formatStopwatch } from '../words/format';
import type { IPoolsModel } from '../model/tokens';
import type { ICellRun } from '../model/cells';
import { formatClock } from './scale';

/** Seconds: a collective may take so long before it is a wait. */
const PATIENCE = 4;

/** What stands on a chip, the most important first, and what it says to those who ask. */
export interface ICellWords {
  parts: string[];
  title: string;
}

/**
 * What is said of a cell: `[6]`, `3 min 51 s`, `ranks 0–3`.
 */
export function sayCell(
  run: ICellRun,
  now: number,
  pools: IPoolsModel,
  trans: TranslationBundle
): ICellWords {
  const { cell: number, start, end } = run;
  const took = sayTook((end ?? now) - start, trans);
  const ranks = sayRanks(
    run.stretches.map(({ rank }) => rank),
    trans
  );
  const wait = end === null ? sayWait(run, now, pools, trans) : '';
  const cell =
    number === null ? trans.__('A cell') : trans.__('Cell [%1]', `${number}`);
  const since = formatClock(start, true);
  const sentences =
    end === null
      ? // Without how long: whoever hears it would hear it anew each second.
        [trans.__('%1 runs on %2 since %3.', cell, ranks, since)]
      : [
          trans.__(
            '%1 ran for %2 on %3, %4–%5.',
            cell,
            took,
            ranks,
            since,
            formatClock(end, true)
          )
        ];
  return {
    parts: [
      number === null ? '' : `[${number}]`,
      end === null ? trans.__('running %1', took) : took,
      wait || ranks
    ].filter(Boolean),
    title: [
      ...sentences,
      wait && trans.__('Now %1.', wait),
      run.name && trans.__('Click to go to it in %1.', run.name)
    ]
      .filter(Boolean)
      .join(' ')
  };
}

/** What is said of cells that are too narrow to tell apart. */
export function sayCells(
  runs: readonly ICellRun[],
  trans: TranslationBundle
): ICellWords {
  const cells = trans._n('%1 cell', '%1 cells', runs.length);
  const last = runs[runs.length - 1];
  return {
    parts: [cells],
    title: trans.__(
      '%1, %2–%3. Click to zoom in.',
      cells,
      formatClock(runs[0].start, true),
      formatClock(last.end ?? last.start, true)
    )
  };
}

function sayTook(seconds: number, trans: TranslationBundle): string {
  return seconds < 1 ? trans.__('< 1 s') : formatStopwatch(seconds, trans);
}

function sayRanks(ranks: number[], trans: TranslationBundle): string {
  return trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks));
}

/** `ranks 0–2 wait for 3`, where that is known. */
function sayWait(
  { pool: id }: ICellRun,
  now: number,
  { pools, telemetry }: IPoolsModel,
  trans: TranslationBundle
): string {
  const pool = pools.get(id);
  const wait = pool && findLongWait(pool, telemetry, now, PATIENCE);
  if (!wait) {
    return '';
  }
  const waiting = wait.waits.flatMap(({ ranks }) => ranks);
  const missing = wait.absences.flatMap(({ ranks }) => ranks);
  return missing.length
    ? trans._n(
        'rank %2 waits for %3',
        'ranks %2 wait for %3',
        waiting.length,
        formatRanks(waiting),
        formatRanks(missing)
      )
    : '';
}
