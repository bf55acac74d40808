import type { IPool } from '../model/contract';
import { canPark, canResize, isParked, parkStage } from '../model/parking';
import { sayParkRule } from '../words/parkWords';
import { poolState } from '../words/poolWords';
import { failure, makeParkable, makeParking, parked } from './parkSamples';
import { makeRank } from './samples';

const leased = { ...parked, leased: true };
const line = { place: 2, expected: null, certain: false };
const dead = makeRank(1, { state: 'dead' });

describe('parkStage', () => {
  it.each<[string, Partial<IPool>, string | null, string]>([
    ['on its GPUs', {}, null, 'idle: idle'],
    [
      'on its way there',
      { parking: makeParking({ resume: false }) },
      'parking',
      'wait: parking'
    ],
    [
      'on its way there, with its GPUs empty already',
      { parked: leased, parking: makeParking({ resume: false }) },
      'parking',
      'wait: parking'
    ],
    ['there', { state: 'SUSPENDED', parked }, 'parked', 'wait: parked'],
    [
      'there, with its GPUs, as its server ended in between',
      { parked: leased },
      'parked',
      'wait: parked'
    ],
    [
      'in line',
      { state: 'SUSPENDED', parked, parking: makeParking({ line }) },
      'waiting',
      'wait: #2 in line'
    ],
    [
      'on its way back',
      { parked: leased, parking: makeParking() },
      'resuming',
      'wait: resuming'
    ],
    [
      'there, as it could not come back',
      { state: 'SUSPENDED', parked, parking: makeParking({ failure }) },
      'parked',
      'wait: parked'
    ],
    [
      'on its GPUs, as it could not go',
      { parking: makeParking({ resume: false, failure }) },
      null,
      'idle: idle'
    ],
    [
      'there, and one of its ranks has died',
      { state: 'SUSPENDED', parked, ranks: [makeRank(0), dead] },
      'parked',
      'error: rank 1 died'
    ],
    ['ending', { state: 'COMPLETING', parked }, null, 'wait: stopping'],
    ['ended', { state: 'COMPLETED', parked, ended: 9 }, null, 'none']
  ])('knows a pool that is %s', (_, changes, stage, said) => {
    const pool = makeParkable(changes);
    expect(parkStage(pool)).toBe(stage);
    const state = poolState(pool);
    expect(state ? `${state.mood}: ${state.words}` : 'none').toBe(said);
    const isThere = pool.state === 'RUNNING' || pool.state === 'SUSPENDED';
    expect(isParked(pool)).toBe(isThere && Boolean(pool.parked));
    expect(canPark(pool)).toBe(stage === null && isThere);
  });
});

describe('canPark', () => {
  const [first] = makeParkable().ranks;
  const resizing = { num_ranks: 4, reason: '', line: null, failure: null };
  it.each<[string, Partial<IPool>, boolean]>([
    ['was started without the option', { park_after: null }, false],
    ['was asked for at once', { park_after: 0 }, true],
    ['has no GPU', { ranks: [makeRank(0)], leases: null }, false],
    ['shares its GPUs', { leases: 'shared' }, false],
    ['is on several nodes', { ranks: [first, { ...first, node: 'b' }] }, false],
    ['has a dead rank', { ranks: [first, dead] }, false],
    ['is being resized', { resizing }, false],
    ['could not be resized', { resizing: { ...resizing, failure } }, true],
    [
      'is on an instance of a GPU',
      { ranks: [{ ...first, gpu: { ...first.gpu!, label: '0:1' } }] },
      false
    ],
    ['replaces ranks', { state: 'CONFIGURING' }, false]
  ])('knows a pool that %s', (_, changes, expected) => {
    expect(canPark(makeParkable(changes))).toBe(expected);
  });
});

it('leaves the size of a pool as it is that is parked, or nearly', () => {
  expect(canResize(makeParkable())).toBe(true);
  expect(canResize(makeParkable({ state: 'SUSPENDED', parked }))).toBe(false);
  const parking = makeParking({ resume: false });
  expect(canResize(makeParkable({ parking }))).toBe(false);
});

it.each([
  [null, ''],
  [30, 'parks after 30 s idle if others wait'],
  [1200, 'parks after 20 min idle if others wait'],
  [5400, 'parks after 1 h 30 min idle if others wait'],
  [7200, 'parks after 2 h idle if others wait']
])('says when a pool parks by itself: %s', (park_after, said) => {
  expect(sayParkRule(makeParkable({ park_after }))).toBe(said);
});
