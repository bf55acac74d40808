import { Widget } from '@lumino/widgets';

import type { IPool } from '../model/contract';
import { Telemetry } from '../model/telemetry';
import { StatusItem } from '../panel/statusBar';
import { loadOf } from '../words/loadWords';
import { poolState } from '../words/poolWords';
import {
  FakeStream,
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { CommandIDs } from '../model/tokens';
import { makeParkable, makeParking, parked } from './parkSamples';
import { FakeQueue } from './queueSamples';
import { emitChanged, makeModel, makePool, makeRank, until } from './samples';

const GB = 2 ** 30;
const onGpus = makePool({
  ranks: [0, 1, 2].map(rank => {
    const index = rank % 2;
    const gpu = { ...GPU_0, index, uuid: `GPU-${index}` };
    return makeRank(rank, { gpu, device: `cuda:${index}` });
  })
});

describe('loadOf', () => {
  it('is the mean of the GPUs, each counted once', () => {
    const telemetry = makeTelemetry(makeGpusMessage(), {
      type: 'sample',
      time: 1,
      values: { utilization: [90, 74], memory_used: [40 * GB, 22 * GB] }
    });
    const load = loadOf(onGpus, makeInventory().gpus, telemetry);
    expect(load).toEqual(['82 %', '31/80 GiB']);
  });

  it('leaves out what is not known', () => {
    const telemetry = makeTelemetry(makeGpusMessage(), {
      type: 'sample',
      time: 1,
      values: { utilization: [null, null], memory_used: [40 * GB, null] }
    });
    const load = loadOf(onGpus, makeInventory().gpus, telemetry);
    expect(load).toEqual(['40/80 GiB']);
    expect(loadOf(onGpus, [], makeTelemetry())).toEqual([]);
  });

  it('is of the processes on the CPU, also where torch has no CUDA', () => {
    const pool = makePool({
      ranks: [makeRank(0, { gpu: GPU_0 }), makeRank(1), makeRank(2)]
    });
    const telemetry = makeTelemetry({
      type: 'usage',
      pools: { p1: [makeUsage(0, { cpu: 101 }), makeUsage(1), null] }
    });
    const load = loadOf(pool, makeInventory().gpus, telemetry);
    expect(load).toEqual(['CPU 76 %', '2.0 GiB']);
  });
});

describe('poolState', () => {
  const dead = makeRank(1, { state: 'dead' });
  const progress = { phase: 'waiting for GPUs', ready: 1 };
  it.each<[Partial<IPool>, string | undefined]>([
    [{ state: 'PENDING', progress }, 'wait: waiting for GPUs'],
    [{ state: 'CONFIGURING', progress }, 'wait: starting 1/2'],
    [{}, 'idle: idle'],
    [{ ranks: [makeRank(0, { state: 'busy' })] }, 'busy: busy'],
    [{ ranks: [makeRank(0), dead] }, 'error: rank 1 died'],
    [{ state: 'COMPLETING' }, 'wait: stopping'],
    [{ state: 'FAILED' }, 'error: failed'],
    [{ state: 'CANCELLED' }, undefined],
    [{ state: 'COMPLETED' }, undefined]
  ])('says %j', (changes, expected) => {
    const state = poolState(makePool(changes));
    expect(state ? `${state.mood}: ${state.words}` : undefined).toBe(expected);
  });
});

describe('StatusItem', () => {
  let stream: FakeStream;
  let queue: FakeQueue;
  let model: ReturnType<typeof makeModel>;
  let item: StatusItem;
  const execute = jest.fn();

  function show(changes: Partial<typeof model>): void {
    Object.assign(model, changes);
    emitChanged(model);
  }

  beforeEach(() => {
    stream = new FakeStream();
    queue = new FakeQueue();
    model = makeModel({ telemetry: new Telemetry(stream), queue });
    item = new StatusItem(model, model, execute);
    // As the status bar does.
    const follow = () => item.setHidden(!item.isActive);
    item.activeChanged.connect(follow);
    Widget.attach(item, document.body);
    follow();
  });

  afterEach(() => item.dispose());

  const button = () => item.node.querySelector('button');

  it('is there only while there is a pool', () => {
    expect(item.isActive).toBe(false);
    show({ pool: makePool() });
    expect(item.isActive).toBe(true);
    show({ pool: makePool({ state: 'COMPLETED' }) });
    expect(item.isActive).toBe(false);
    show({ pool: makePool(), connection: { state: 'missing' } });
    expect(item.isActive).toBe(false);
  });

  it('follows the load while it can be seen', async () => {
    show({ pool: makePool() });
    expect(stream.watched).toEqual([['gpus']]);
    await until(() => button()?.textContent === '2 ranks');
    stream.received.emit({
      type: 'usage',
      pools: { p1: [makeUsage(0), makeUsage(1)] }
    });
    await until(() => button()?.textContent === '2 ranks · CPU 50 % · 2.0 GiB');
    queue.tell({ pending: 1 });
    await until(
      () => button()?.textContent?.endsWith(' · 1 job waits') ?? false
    );
    button()?.click();
    expect(execute).toHaveBeenCalledWith(CommandIDs.openPanel);

    show({ connection: { state: 'stale', since: 0 } });
    await until(() => button()?.textContent === '2 ranks · connection lost');
    show({ pool: null });
    expect(stream.watched.at(-1)).toEqual([]);
  });

  it('tells of a parked pool instead of GPUs that are others’', async () => {
    stream.received.emit(makeGpusMessage());
    show({ pool: makeParkable({ state: 'SUSPENDED', parked }) });
    await until(() => button()?.textContent === '2 ranks · parked');
    expect(button()?.title).toMatch(
      /^Parked for .* GPUs 0, 1\. What was there \(41\.0 GiB\)/
    );
    const parking = makeParking({
      line: { place: 2, expected: null, certain: false }
    });
    show({ pool: makeParkable({ state: 'SUSPENDED', parked, parking }) });
    await until(() => button()?.textContent === '2 ranks · #2 in line');
    expect(stream.watched).toEqual([]);
  });

  it('counts own jobs that wait without a pool too, and reads no rows for it', async () => {
    expect(queue.watched).toEqual(['ends']);
    queue.tell({ pending: 2 });
    expect(item.isActive).toBe(true);
    await until(() => button()?.textContent === '2 jobs wait');
    button()?.click();
    expect(execute).toHaveBeenCalledWith(CommandIDs.showQueue);
    queue.tell({ pending: 1 });
    await until(() => button()?.textContent === '1 job waits');
    show({ connection: { state: 'stale', since: 0 } });
    expect(item.isActive).toBe(false);
    show({ connection: { state: 'live' } });
    queue.tell({ pending: 0 });
    expect(item.isActive).toBe(false);
    item.dispose();
    expect(queue.watched).toEqual([]);
  });

  it('warns of a rank that died, aloud too', async () => {
    const ranks = [makeRank(0), makeRank(1, { state: 'dead' })];
    show({ pool: makePool({ ranks }) });
    await until(() => button()?.textContent === '2 ranks · rank 1 died');
    const news = item.node.querySelector('[role=status]');
    expect(news?.textContent).toBe('2 ranks · rank 1 died');
    await until(() => item.node.querySelector('button svg') !== null);
    stream.received.emit({
      type: 'usage',
      pools: { p1: [makeUsage(0), null] }
    });
    await until(() => Boolean(button()?.textContent?.endsWith('GiB')));
    // Else it would be read out with every sample.
    expect(news?.textContent).toBe('2 ranks · rank 1 died');
  });
});
