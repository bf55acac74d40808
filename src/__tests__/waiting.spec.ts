import type { IPool } from '../model/contract';
import { findLongWait } from '../model/waiting';
import { sayLongWait } from '../words/waitWords';
import { makeStopped, makeTelemetry, makeUsage } from './gpuSamples';
import { makePool, makeRank } from './samples';
const NOW = 1000;

/** What a rank does: a collective and since how many seconds, or a state. */
type Doing =
  [call: string, seconds: number, line?: number, calls?: number] | string;

function say(doings: Doing[], changes: Partial<IPool> = {}): string | null {
  const pool = makePool({
    world_size: doings.length,
    ranks: doings.map((doing, rank) =>
      makeRank(rank, {
        state:
          doing === 'idle' || doing === 'dead' ? (doing as 'idle') : 'busy',
        cell: 7
      })
    ),
    ...changes
  });
  const stopped = doings.flatMap((doing, rank) =>
    doing === 'silent' ? [rank] : []
  );
  const telemetry = makeTelemetry({
    type: 'usage',
    pools: {
      p1: doings.map((doing, rank) =>
        typeof doing === 'string'
          ? makeUsage(rank, SILENT.includes(doing) ? { host_pid: null } : {})
          : makeUsage(rank, {
              call: doing[0],
              waiting_since: NOW - doing[1],
              line: doing[2] ?? 12,
              calls: doing[3] ?? null
            })
      )
    },
    verdicts: {
      p1: makeStopped(...stopped)
    }
  });
  const wait = findLongWait(pool, telemetry, NOW, 10);
  if (!wait) {
    return null;
  }
  const { head, rest } = sayLongWait(wait);
  return `${head} ${rest}`;
}

/** They do not answer; of the first ones, the server knows that they will not. */
const SILENT: Doing[] = ['silent', 'late'];
const waits: Doing = ['all_reduce', 11];

it.each<[Doing[], string]>([
  [
    [waits, waits, waits, 'idle'],
    'Rank 3 never joined all_reduce. Rank 3 is idle. Ranks 0–2 wait at cell [7], line 12.'
  ],
  [
    ['dead', waits],
    'Rank 0 never joined all_reduce. Rank 0 is dead. Rank 1 waits at cell [7], line 12.'
  ],
  [
    ['busy', waits],
    'Rank 0 has not joined all_reduce yet. Rank 0 is busy elsewhere. Rank 1 waits at cell [7], line 12.'
  ],
  [
    ['silent', 'silent', waits],
    'Ranks 0–1 never joined all_reduce. Ranks 0–1 do not respond. Rank 2 waits at cell [7], line 12.'
  ],
  [
    ['idle', 'dead', 'busy', waits],
    'Ranks 0–1 never joined all_reduce. Rank 0 is idle. Rank 1 is dead. Rank 2 is busy elsewhere. Rank 3 waits at cell [7], line 12.'
  ],
  [
    [waits, ['barrier', 3, 15], 'idle'],
    'Ranks 1–2 never joined all_reduce. Rank 2 is idle. Rank 1 waits in barrier at cell [7], line 15. Rank 0 waits at cell [7], line 12.'
  ],
  [
    [waits, waits, ['broadcast', 3, 15]],
    'The ranks wait in different collectives. Ranks 0–1 wait in all_reduce at cell [7], line 12. Rank 2 waits in broadcast at cell [7], line 15.'
  ],
  [
    [waits, ['all_reduce', 2, 13], 'idle'],
    'Rank 2 never joined all_reduce. Rank 2 is idle. Ranks 0–1 wait in cell [7].'
  ],
  [
    [['all_reduce', 11, 12, 412], ['all_reduce', 2, 12, 412], 'idle'],
    'Rank 2 never joined all_reduce #412. Rank 2 is idle. Ranks 0–1 wait at cell [7], line 12.'
  ],
  [
    [['all_reduce', 11, 12, 412], ['all_reduce', 2, 12, 413], 'idle'],
    'Rank 2 never joined all_reduce. Rank 2 is idle. Ranks 0–1 wait at cell [7], line 12.'
  ],
  [
    [
      ['all_reduce', 11, 12, 5],
      ['broadcast', 3, 15, 6]
    ],
    'The ranks wait in different collectives. Rank 0 waits in all_reduce #5 at cell [7], line 12. Rank 1 waits in broadcast #6 at cell [7], line 15.'
  ],
  [
    [waits, ...Array.from({ length: 11 }, (_, i) => (i % 2 ? waits : 'idle'))],
    'Ranks 1, 3, 5, 7, … (6) never joined all_reduce. Ranks 1, 3, 5, 7, … (6) are idle. Ranks 0, 2, 4, 6, … (6) wait at cell [7], line 12.'
  ]
])('ranks that do %j: %s', (doings, sentence) => {
  expect(say(doings)).toBe(sentence);
});

it.each<[string, Doing[], Partial<IPool>]>([
  ['nobody waits', ['busy', 'idle'], {}],
  ['it is not long yet', [['all_reduce', 10], 'idle'], {}],
  ['all are there, and slow', [waits, ['all_reduce', 60]], {}],
  ['the others may only be slow to answer', [waits, 'late'], {}],
  ['the pool stops', [waits, 'idle'], { state: 'COMPLETING' }]
])('nothing is wrong when %s', (_, doings, changes) => {
  expect(say(doings, changes)).toBeNull();
});

it('what a rank said while it was busy does not count when it is idle', () => {
  const ranks = [makeRank(0), makeRank(1, { state: 'busy' })];
  expect(say([waits, 'busy'], { ranks })).toBeNull();
});
