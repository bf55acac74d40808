import { Telemetry } from '../model/telemetry';
import { selectCells, selectGpus } from '../timeline/selection';
import type { Selection } from '../timeline/selection';
import { Waits } from '../timeline/waits';
import {
  FakeStream,
  GPU_0,
  makeCell,
  makeGpu,
  makeGpusMessage,
  makeUsage
} from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';

const GPUS = [0, 1, 2, 3].map(index => makeGpu(index));

function follow() {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  stream.received.emit(makeGpusMessage());
  const told = (...spans: [number, number | null][]) => {
    const other = makeCell('b', [], { pool: 'p2' });
    other.stretches.push({
      rank: 0,
      gpu: 'GPU-2',
      start: 1,
      end: 2,
      lanes: null
    });
    const cells = [makeCell('a', spans), other];
    stream.received.emit({ type: 'cells', complete: true, cells });
  };
  return { stream, telemetry, told };
}

describe('what the timeline shows', () => {
  const own = makePool({ ranks: [makeRank(0, { gpu: GPU_0 })] });

  it('is the GPUs in use, or in use before, all, or those of the own pool', () => {
    const { telemetry, told } = follow();
    const shown = (selection: Selection, pool = own) =>
      selectGpus(selection, GPUS, pool, telemetry).map(({ index }) => index);
    expect(shown('used')).toEqual([0, 1, 2, 3]); // none is
    told([1, 2], [1, 2]);
    expect(shown('used')).toEqual([0, 1, 2]);
    expect(shown('all')).toEqual([0, 1, 2, 3]);
    expect(shown('own')).toEqual([0]);
    expect(shown('own', makePool())).toEqual([0, 1, 2, 3]); // it has none
  });

  it('is the cells of these', () => {
    const { telemetry, told } = follow();
    told([1, 2]);
    const shown = (selection: Selection) =>
      selectCells(selection, own, telemetry.cells).map(({ pool }) => pool);
    expect(shown('used')).toEqual(['p1', 'p2']);
    expect(shown('own')).toEqual(['p1']);
  });
});

it('waits of ranks are kept, but for short ones', () => {
  const { stream, telemetry } = follow();
  const gpu = { ...GPU_0 };
  const ranks = [makeRank(0, { gpu, state: 'busy', cell: 7 })];
  const pools = new Map([['p1', makePool({ ranks })]]);
  const model = makeModel({ pools, telemetry });
  const waits = new Waits();
  const tell = (waiting_since: number | null, now: number) => {
    const call = waiting_since === null ? null : 'all_reduce';
    const usage = [makeUsage(0, { call, waiting_since })];
    stream.received.emit({ type: 'usage', pools: { p1: usage } });
    waits.add(model, now);
  };
  tell(100, 101);
  expect(waits.on('GPU-0')).toEqual([]);
  tell(100, 103);
  expect(waits.on('GPU-0')).toMatchObject([{ start: 100, end: null }]);
  tell(110, 111);
  tell(null, 111.5);
  expect(waits.on('GPU-0')).toMatchObject([{ start: 100, end: 111 }]);
  expect(waits.on('GPU-1')).toEqual([]);
  tell(null, 5000);
  expect(waits.on('GPU-0')).toEqual([]);
});
