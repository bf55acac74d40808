import { nullTranslator } from '@jupyterlab/translation';

import { loadTranslations } from '../model/trans';
import { GpuList, GpuSummary } from '../panel/gpus/gpuList';
import { OtherPools, OtherPoolsSummary } from '../panel/others/otherPools';
import { PoolSummary } from '../panel/pool/poolView';
import { QueueSection, QueueSummary } from '../panel/queue/queueSection';
import { findLongWait } from '../model/waiting';
import { poolState, sayActivity } from '../words/poolWords';
import { sayEnd } from '../words/queueWords';
import { sayLongWait, sayWaitShortly } from '../words/waitWords';
import {
  GPU_0,
  makeGpusMessage,
  makeProcess,
  makeStopped,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { showGpus, tell } from './gpuScreen';
import { expectWhole, isWhole, pseudo, textsIn } from './pseudo';
import { makeParkable, makeParking, parked } from './parkSamples';
import { FakeQueue, makeJob, makeRow } from './queueSamples';
import { makeAttachment, makePool, makeRank } from './samples';
import { host, press, show } from './screen';

beforeEach(() => {
  jest.spyOn(nullTranslator, 'load').mockReturnValue(pseudo);
  loadTranslations(nullTranslator);
});

afterEach(() => {
  jest.restoreAllMocks();
});

it.each([
  ['⟦Rank 1⟧', true],
  ['train.ipynb · ⟦4 ranks⟧', true],
  ['⟦Rank 1 died.⟧ ⟦Replace it.⟧', true],
  ['⟦⟦rank 1⟧ died⟧', false],
  ['⟦busy⟧ ⟦in cell 7⟧', false],
  ['⟦rank⟧ 1', false]
])('tells whether "%s" is whole: %s', (text, expected) => {
  expect(isWhole(text)).toBe(expected);
});

const busy = { state: 'busy', cell: 7 } as const;
const gpu = { gpu: GPU_0, device: 'cuda:0' };

describe('no sentence is glued', () => {
  it.each([
    ['idle', makePool()],
    ['busy', makePool({ ranks: [makeRank(0, busy), makeRank(1)] })],
    [
      'in part dead',
      makePool({
        ranks: [
          makeRank(0, { ...busy, ...gpu }),
          makeRank(1, { state: 'dead' })
        ]
      })
    ],
    [
      'dead',
      makePool({ ranks: [0, 1].map(rank => makeRank(rank, { state: 'dead' })) })
    ],
    ['starting', makePool({ state: 'CONFIGURING' })],
    ['stopping', makePool({ state: 'COMPLETING' })],
    ['orphaned', makePool({ orphaned: 90 })],
    ['failed', makePool({ state: 'FAILED', ended: 99 })],
    ['that can be parked', makeParkable()],
    ['parking', makeParkable({ parking: makeParking({ resume: false }) })],
    ['parked', makeParkable({ state: 'SUSPENDED', parked })],
    [
      'parked and in part dead',
      makeParkable({
        ...{ state: 'SUSPENDED', parked },
        ranks: [makeRank(0, gpu), makeRank(1, { state: 'dead' })]
      })
    ],
    [
      'in line to be resumed',
      makeParkable({
        ...{ state: 'SUSPENDED', parked },
        parking: makeParking({
          line: { place: 2, expected: null, certain: false }
        })
      })
    ],
    [
      'shared',
      makePool({
        attachments: [makeAttachment({ kernel_id: 'k2', pid: 7, name: '' })]
      })
    ],
    [
      'large',
      makePool({
        world_size: 20,
        ranks: Array.from({ length: 20 }, (_, rank) => makeRank(rank, busy))
      })
    ]
  ])('of a pool that is %s', (_, pool) => {
    const usage = makeUsage(0, { allocated: 2 ** 30, reserved: 2 ** 31 });
    const telemetry = makeTelemetry({ type: 'usage', pools: { p1: [usage] } });
    show({ pool, pools: new Map([['p1', pool]]), telemetry });
    expectWhole(textsIn(host));
    const state = poolState(pool)?.words ?? '';
    expect([state, sayActivity(pool, 200)].every(isWhole)).toBe(true);
  });

  it('of a pool before it is started, and in its summary', () => {
    show({});
    expectWhole(textsIn(host));
    show({ pool: makePool() }, PoolSummary);
    expect(isWhole(host.textContent ?? '')).toBe(true);
  });

  it('of GPUs, their leases and processes', () => {
    const pool = makePool({ ranks: [makeRank(0, gpu), makeRank(1, gpu)] });
    const lease = { user: 'bob', pid: 7, since: 9, pool: 'p9', shared: true };
    showGpus(
      makeGpusMessage({
        stale_since: 90,
        trouble: 'The sampler is gone.',
        leases: {
          'GPU-0': { ...lease, others: [{ ...lease, pool: 'p1' }] }
        }
      }),
      { pool, pools: new Map([['p1', pool]]) }
    );
    tell(
      {
        type: 'processes',
        gpus: { 'GPU-0': [], 'GPU-1': [makeProcess(), makeProcess({ pid: 8 })] }
      },
      {
        type: 'sample',
        time: 1,
        values: {
          utilization: [50, 3],
          power: [300, 9],
          throttle: ['hot', null]
        }
      }
    );
    [...host.querySelectorAll<HTMLElement>('[aria-expanded]')]
      .map(node => node.getAttribute('aria-label') ?? '')
      .forEach(press);
    expectWhole(textsIn(host));
  });

  it('of other pools, and in the summaries', () => {
    const own = makePool();
    const orphan = makePool({ id: 'p2', kernel_id: 'k2', orphaned: 90 });
    const other = makePool({
      id: 'p3',
      kernel_id: 'k3',
      ranks: [makeRank(0, gpu)]
    });
    const changes = {
      pool: own,
      pools: new Map([own, orphan, other].map(pool => [pool.id, pool]))
    };
    const leases = {
      'GPU-0': { user: 'bob', since: 9, pool: 'p9', shared: true },
      'GPU-1': { user: null, shared: false }
    };
    showGpus(makeGpusMessage({ leases }), changes, OtherPools);
    expectWhole(textsIn(host));
    for (const Summary of [OtherPoolsSummary, GpuSummary]) {
      showGpus(makeGpusMessage({ leases }), changes, Summary);
      expect(isWhole(host.textContent ?? '')).toBe(true);
    }
  });

  it('of the queue, and in its summary', () => {
    const expected = { start: 5e9, certain: true };
    const rows = [
      makeRow({ state: 'RUNNING', gpu_uuids: ['GPU-0'], ends_by: 5e9 }),
      makeRow({ expected }),
      makeRow({ id: '13', expected: { ...expected, certain: false } }),
      makeRow({ kind: 'other', user: '', state: 'RUNNING', priority: null }),
      makeRow({ kind: 'pool', state: 'RUNNING', idle_since: 9, priority: null })
    ];
    const ended = [
      makeJob(),
      makeJob({ id: 2, state: 'FAILED', exit_code: 1 })
    ];
    show({ queue: new FakeQueue({ rows, ended }) }, QueueSection);
    host.querySelector<HTMLElement>('[aria-expanded]')?.click();
    expectWhole(textsIn(host));
    show({ queue: new FakeQueue({ rows: [], ended: [] }) }, QueueSection);
    expectWhole(textsIn(host));
    show({ queue: new FakeQueue({ rows }) }, QueueSummary);
    expect(isWhole(host.textContent ?? '')).toBe(true);
    const states = ['CANCELLED', 'TIMEOUT', 'OUT_OF_MEMORY', 'FAILED'] as const;
    expectWhole(states.map(state => sayEnd(makeJob({ state }))));
  });

  it.each([
    [['all_reduce', null, null]],
    [['all_reduce', 'barrier', null]],
    [['all_reduce', 'barrier', 'broadcast']],
    [['all_reduce', 'all_reduce', 'silent']]
  ])('of a long wait: %j', calls => {
    const pool = makePool({
      ranks: calls.map((call, rank) => makeRank(rank, call ? busy : {}))
    });
    const telemetry = makeTelemetry({
      type: 'usage',
      pools: {
        p1: calls.map((call, rank) =>
          call === 'silent'
            ? null
            : makeUsage(rank, call ? { call, waiting_since: 9, line: 3 } : {})
        )
      },
      verdicts: { p1: makeStopped(calls.indexOf('silent')) }
    });
    const wait = findLongWait(pool, telemetry, 1000, 10)!;
    const { head, rest } = sayLongWait(wait);
    expectWhole([head, rest, sayWaitShortly(wait)]);
  });

  it('where the GPUs are listed for the first time', () => {
    show({}, GpuList);
    expectWhole(textsIn(host));
  });
});
