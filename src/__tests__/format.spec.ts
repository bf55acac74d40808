import {
  formatBackend,
  formatBytes,
  formatDuration,
  formatMemory,
  formatRanks,
  formatRate,
  formatStopwatch
} from '../words/format';
import { sayActivity } from '../words/poolWords';
import { makePool, makeRank } from './samples';

it.each([
  [-3, '0 s'],
  [41.9, '41 s'],
  [725, '12 min'],
  [7300, '2 h'],
  [200000, '2 d']
])('says a duration of %d s as %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

it.each([
  [41, '41 s'],
  [231, '3 min 51 s'],
  [7500, '2 h 5 min']
])('says %d s on the stopwatch as %s', (seconds, text) => {
  expect(formatStopwatch(seconds)).toBe(text);
});

it.each([
  [[], ''],
  [[3], '3'],
  [[2, 0, 1], '0–2'],
  [[0, 2, 3, 7], '0, 2–3, 7']
])('says ranks %j as "%s"', (ranks, text) => {
  expect(formatRanks(ranks)).toBe(text);
});

it('says memory and back end as people do', () => {
  expect(formatMemory(85520809984)).toBe('80 GiB');
  expect(formatBackend('gloo')).toBe('gloo');
  expect(formatBackend('cpu:gloo,cuda:nccl')).toBe('gloo + nccl');
});

describe('sayActivity', () => {
  const say = (...ranks: Parameters<typeof makeRank>[1][]) =>
    sayActivity(
      makePool({
        world_size: ranks.length,
        ranks: ranks.map((changes, index) => makeRank(index, changes))
      }),
      141
    );

  it('counts from the first rank that got busy', () => {
    expect(
      say({ state: 'busy', since: 100 }, { state: 'busy', since: 120 })
    ).toBe('all ranks busy · 41 s');
  });

  it('names the busy ranks when some are idle', () => {
    expect(say({ state: 'busy' }, { state: 'busy' }, {})).toBe(
      'ranks 0–1 busy · rank 2 idle'
    );
  });

  it('names the cell, and who has none', () => {
    const busy = { state: 'busy', cell: 7 } as const;
    expect(say(busy, busy)).toBe('cell [7] · 41 s');
    expect(say(busy, busy, { cell: 6 }, { state: 'dead' })).toBe(
      'cell [7] on ranks 0–1 · rank 2 idle'
    );
    expect(say(busy, { ...busy, cell: 8 }, {}, {})).toBe(
      'cell [7] on rank 0 · cell [8] on rank 1 · ranks 2–3 idle'
    );
  });

  it('counts from the last rank that got idle', () => {
    expect(say({ since: 100 }, { since: 131 })).toBe('idle 10 s');
  });

  it('says nothing of dead ranks, which the pill counts', () => {
    expect(say({ since: 100 }, { state: 'dead', since: 131 })).toBe(
      'idle 41 s'
    );
    expect(say({ state: 'dead' }, { state: 'dead' })).toBe('');
  });
});

it.each([
  [0, '0 B'],
  [20, '20 B'],
  [3.4 * 2 ** 10, '3.4 KiB'],
  [64 * 2 ** 10, '64 KiB'],
  [2.5 * 2 ** 20, '2.5 MiB'],
  [512 * 2 ** 20, '512 MiB'],
  [33.5 * 2 ** 30, '33.5 GiB'],
  [141 * 2 ** 30, '141 GiB']
])('says that %d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

it.each([
  [25e6, '25 MB/s'],
  [1.2e9, '1.2 GB/s'],
  [12e9, '12 GB/s']
])('says a rate of %d bytes a second as %s', (rate, text) => {
  expect(formatRate(rate)).toBe(text);
});
