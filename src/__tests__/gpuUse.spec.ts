import { cards, labelOf, shortName } from '../model/cards';
import { seatsOn, segments } from '../model/gpuUse';
import {
  GPU_0,
  makeGpu,
  makeGpusMessage,
  makeProcess,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { makePool, makeRank } from './samples';

const GB = 2 ** 30;

/** Telemetry of a GPU with 40 GiB in use, by these processes. */
function telemetryOf(
  processes: Parameters<typeof makeProcess>[0][],
  usage = makeUsage(0)
) {
  return makeTelemetry(
    makeGpusMessage(),
    { type: 'sample', time: 1, values: { memory_used: [40 * GB, 0] } },
    { type: 'processes', gpus: { 'GPU-0': processes.map(makeProcess) } },
    { type: 'usage', pools: { p1: [usage] } }
  );
}

describe('seatsOn', () => {
  it('names the ranks on a GPU, the own first, and no pool that has ended or is parked', () => {
    const ranks = [makeRank(0, { gpu: GPU_0 }), makeRank(1)];
    const [other, own, ended, parked] = [
      makePool({ id: 'p1', ranks }),
      makePool({ id: 'p2', ranks: [makeRank(2, { gpu: GPU_0 })] }),
      makePool({ id: 'p3', ranks, ended: 5 }),
      makePool({ id: 'p4', ranks, state: 'SUSPENDED' })
    ];
    expect(seatsOn('GPU-0', [other, ended, parked, own], own)).toEqual([
      { pool: own, rank: 2 },
      { pool: other, rank: 0 }
    ]);
  });
});

describe('segments', () => {
  const seats = [{ pool: makePool(), rank: 0 }];
  const rank = { kind: 'rank', pool: 'p1', rank: 0 } as const;

  it('divides the memory by who holds it', () => {
    const telemetry = telemetryOf([
      { memory: 20 * GB, who: rank },
      { memory: 2 * GB, who: { kind: 'kernel', kernel_id: 'k', name: 'a' } },
      { memory: 3 * GB, who: { kind: 'other' } },
      { memory: 4 * GB, who: { kind: 'other' } },
      { memory: null, who: { kind: 'mine' } },
      { memory: 5 * GB, who: { kind: 'unknown' } }
    ]);
    expect(segments(telemetry.gpu('GPU-0'), seats, telemetry)).toEqual([
      { owner: rank, bytes: 20 * GB },
      { owner: { kind: 'kernel' }, bytes: 2 * GB },
      { owner: { kind: 'other' }, bytes: 7 * GB },
      { owner: { kind: 'rest' }, bytes: 11 * GB }
    ]);
  });

  it('believes torch where the driver knows only pids of the host', () => {
    const telemetry = telemetryOf(
      [{ memory: 30 * GB, who: { kind: 'unknown' } }],
      makeUsage(0, { reserved: 28 * GB })
    );
    expect(segments(telemetry.gpu('GPU-0'), seats, telemetry)).toEqual([
      { owner: rank, bytes: 28 * GB },
      { owner: { kind: 'rest' }, bytes: 12 * GB }
    ]);
  });

  it('shows no more than is used', () => {
    const telemetry = telemetryOf([
      { memory: 90 * GB, who: rank },
      { memory: 5 * GB }
    ]);
    expect(segments(telemetry.gpu('GPU-0'), seats, telemetry)).toEqual([
      { owner: rank, bytes: 40 * GB }
    ]);
    expect(segments(telemetry.gpu('GPU-1'), [], telemetry)).toEqual([]);
  });
});

describe('cards', () => {
  it('keeps the MIG instances of a GPU together', () => {
    const [whole, first, second] = [
      makeGpu(0),
      makeGpu(1, {
        mig: 0,
        parent: 'GPU-1',
        name: 'NVIDIA H100 80GB MIG 1g.10gb'
      }),
      makeGpu(1, { mig: 1, parent: 'GPU-1' })
    ];
    expect(cards([whole, first, second])).toEqual([
      { gpu: whole },
      { instances: [first, second] }
    ]);
    expect([whole, second].map(labelOf)).toEqual(['0', '1:1']);
    expect([whole, first, second].map(shortName)).toEqual([
      'H100 80GB',
      '1g.10gb',
      'H100 80GB'
    ]);
  });
});
