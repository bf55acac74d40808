import { deadRanks } from '../model/contract';
import type { IPool, IRank } from '../model/contract';
import { parkStage } from '../model/parking';
import { serverTime } from '../model/serverTime';
import { trans } from '../model/trans';
import {
  formatDuration,
  formatStopwatch,
  joinFacts,
  listRanks
} from './format';
import { sayLine } from './lineWords';
import { sayStageShortly } from './parkWords';

/** Seconds after which ranks that do not stop have their process group aborted. */
const BEFORE_ABORT = 2;

export interface IPoolState {
  mood: 'idle' | 'busy' | 'wait' | 'error';
  /** A word or two: `busy`, `starting 1/4`, `rank 1 died`. */
  words: string;
}

/**
 * How a pool does, in short; null when it has ended as it was told to. `silent` are ranks that do not respond.
 */
export function poolState(
  pool: IPool,
  silent: number[] = []
): IPoolState | null {
  const { state, progress, world_size } = pool;
  switch (state) {
    case 'PENDING':
      return {
        mood: 'wait',
        words: progress.line
          ? sayLine(progress.line, serverTime())
          : progress.phase || trans.__('waiting')
      };
    case 'CONFIGURING':
      return {
        mood: 'wait',
        words: trans.__('starting %1/%2', progress.ready, world_size)
      };
    case 'RUNNING':
    case 'SUSPENDED':
      return runningState(pool, silent);
    case 'COMPLETING':
      return { mood: 'wait', words: trans.__('stopping') };
    case 'FAILED':
      return { mood: 'error', words: trans.__('failed') };
    default:
      return null;
  }
}

function runningState(pool: IPool, silent: number[]): IPoolState {
  const dead = numbersOf(deadRanks(pool));
  if (dead.length > 0) {
    return {
      mood: 'error',
      words: areAll(dead, pool)
        ? trans.__('all ranks died')
        : trans._n(
            'rank %2 died',
            'ranks %2 died',
            dead.length,
            listRanks(dead)
          )
    };
  }
  if (silent.length > 0) {
    return {
      mood: 'error',
      words: trans._n(
        'rank %2 does not respond',
        'ranks %2 do not respond',
        silent.length,
        listRanks(silent)
      )
    };
  }
  const stage = parkStage(pool);
  if (stage) {
    return { mood: 'wait', words: sayStageShortly(stage, pool) };
  }
  return pool.ranks.some(({ state }) => state === 'busy')
    ? { mood: 'busy', words: trans.__('busy') }
    : { mood: 'idle', words: trans.__('idle') };
}

/** `1 rank`, `4 ranks`; empty for 0: while a pool waits for GPUs, the number may be open. */
export function countRanks(count: number): string {
  return count ? trans._n('%1 rank', '%1 ranks', count) : '';
}

/** What the living ranks of a running pool do: `cell [7] · 41 s`, `cell [7] on ranks 0–2 · rank 3 idle`. */
export function sayActivity(pool: IPool, now: number): string {
  const inState = (state: IRank['state']) =>
    pool.ranks.filter(rank => rank.state === state);
  const busy = inState('busy');
  const idle = numbersOf(inState('idle'));
  if (busy.length === 0) {
    const since = Math.max(...inState('idle').map(rank => rank.since));
    return idle.length > 0
      ? trans.__('idle %1', formatDuration(now - since))
      : '';
  }
  const since = Math.min(...busy.map(rank => rank.since));
  const sayIdle =
    idle.length > 0 &&
    trans._n('rank %2 idle', 'ranks %2 idle', idle.length, listRanks(idle));
  return joinFacts([
    ...sayCells(busy, pool),
    sayIdle,
    !sayIdle && formatStopwatch(now - since)
  ]);
}

/** Which cell is on which ranks: `cell [7] on ranks 0–2`. */
function sayCells(busy: IRank[], pool: IPool): string[] {
  return [...new Set(busy.map(({ cell }) => cell))].map(cell => {
    const ranks = numbersOf(busy.filter(rank => rank.cell === cell));
    const args = [ranks.length, listRanks(ranks), cell] as const;
    if (areAll(ranks, pool)) {
      return cell === null
        ? trans.__('all ranks busy')
        : trans.__('cell [%1]', cell);
    }
    return cell === null
      ? trans._n('rank %2 busy', 'ranks %2 busy', ...args)
      : trans._n('cell [%3] on rank %2', 'cell [%3] on ranks %2', ...args);
  });
}

/** What a stop is at: `ending the collective · 3 s`. */
export function sayInterrupt(seconds: number): string {
  return joinFacts([
    seconds < BEFORE_ABORT
      ? trans.__('stopping the cell')
      : trans.__('ending the collective'),
    formatStopwatch(seconds)
  ]);
}

/** `1 rank dead`. */
export function countDead(pool: IPool): string {
  const { length } = deadRanks(pool);
  return trans._n('%1 rank dead', '%1 ranks dead', length);
}

/** `1 rank does not respond`. */
export function countSilent(count: number): string {
  return trans._n('%1 rank does not respond', '%1 ranks do not respond', count);
}

/** What it means that ranks died. */
export function sayDeaths(pool: IPool): string {
  const dead = numbersOf(deadRanks(pool));
  return areAll(dead, pool)
    ? trans.__('All ranks died. Their variables are lost.')
    : trans._n(
        'Rank %2 died. The other ranks keep their variables; collectives hang until it is restarted.',
        'Ranks %2 died. The other ranks keep their variables; collectives hang until they are restarted.',
        dead.length,
        listRanks(dead)
      );
}

/** `Restart rank 3`, which is dead. */
export function sayRestartDead(pool: IPool): string {
  const dead = numbersOf(deadRanks(pool));
  return areAll(dead, pool)
    ? trans.__('Restart all ranks')
    : trans._n(
        'Restart rank %2',
        'Restart ranks %2',
        dead.length,
        listRanks(dead)
      );
}

/** `Restart rank 3…`, which asks first. */
export function sayRestart(ranks: number[]): string {
  return trans._n(
    'Restart rank %2…',
    'Restart ranks %2…',
    ranks.length,
    listRanks(ranks)
  );
}

/** How the ranks of a pool got their GPUs: `Placement: in order`. */
export function sayPlacement(policy: string): string {
  switch (policy) {
    case 'cycle':
      return trans.__('Placement: in order');
    case 'free-memory':
      return trans.__('Placement: most free memory first');
    case 'performance':
      return trans.__('Placement: fastest GPUs first');
    default:
      return trans.__('Placement: %1', policy);
  }
}

function numbersOf(ranks: IRank[]): number[] {
  return ranks.map(({ rank }) => rank);
}

function areAll(ranks: number[], pool: IPool): boolean {
  return ranks.length === pool.world_size && ranks.length > 1;
}
