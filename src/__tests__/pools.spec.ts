import type { INotebookTracker } from '@jupyterlab/notebook';

import { Client } from '../model/restClient';
import { CurrentNotebook } from '../model/notebook';
import { PoolsModel } from '../model/pools';
import { serverTime } from '../model/serverTime';
import { Stream } from '../model/stream';
import { Telemetry } from '../model/telemetry';
import { FakeNotebooks } from './fakeNotebooks';
import { FakeServer } from './fakeServer';
import { makeGpusMessage, makeProcess } from './gpuSamples';
import { FakeQueue } from './queueSamples';
import { makeAttachment, makePool, makeRank, until } from './samples';

describe('PoolsModel', () => {
  let server: FakeServer;
  let stream: Stream;
  let notebooks: FakeNotebooks;
  let model: PoolsModel;
  let current: CurrentNotebook;

  beforeEach(async () => {
    server = await FakeServer.start();
    const client = new Client(server.settings);
    stream = new Stream(client, 10);
    notebooks = new FakeNotebooks();
    model = new PoolsModel({
      client,
      stream,
      kernels: notebooks,
      telemetry: new Telemetry(stream),
      queue: new FakeQueue()
    });
    const tracker = notebooks.tracker as unknown as INotebookTracker;
    current = new CurrentNotebook(tracker, model);
    await stream.connect();
    await until(() => model.gpus !== null);
  });

  afterEach(async () => {
    stream.dispose();
    await server.stop();
  });

  it('knows nothing before the server’s first list', async () => {
    const client = new Client(server.settings);
    const silent = new Stream(client);
    const telemetry = new Telemetry(silent);
    const other = new PoolsModel({
      ...{ client, stream: silent, kernels: notebooks, telemetry },
      queue: new FakeQueue()
    });
    expect(other.isKnown).toBe(false);
    await silent.connect();
    await until(() => other.isKnown);
    silent.dispose();
    server.dropStreams();
    await until(() => model.connection.state === 'stale');
    expect(model.isKnown).toBe(true);
  });

  it('shows a pool that something else started', async () => {
    expect(current.pool).toBeNull();
    server.push({ type: 'pool', pool: makePool() });
    await until(() => current.pool?.id === 'p1');
    server.push({ type: 'pool_removed', id: 'p1' });
    await until(() => current.pool === null);
  });

  it('shows what agents have called, the last call first', async () => {
    const call = (id: number, ended: number | null) => ({
      ...{ id, agent: 'a', tool: 'pool', pool: null, what: '' },
      ...{ begun: 1, ended, failed: false }
    });
    const push = (complete: boolean, ...agents: ReturnType<typeof call>[]) =>
      server.push({ type: 'agents', complete, agents });
    push(true, call(1, 2), call(2, null));
    await until(() => model.agentCalls.length === 2);
    push(false, call(2, 3), call(3, null));
    await until(() => model.agentCalls.length === 3);
    expect(model.agentCalls).toEqual([call(3, null), call(2, 3), call(1, 2)]);
    push(true);
    await until(() => !model.agentCalls.length);
  });

  it('keeps a rank that did not change as it is', async () => {
    server.push({ type: 'pool', pool: makePool() });
    await until(() => current.pool !== null);
    const [first, second] = current.pool?.ranks ?? [];
    const busy = makeRank(1, { state: 'busy' });
    const body = makePool({ version: 2, ranks: [makeRank(0), busy] });
    server.answers.set('POST pools/p1/kill', { status: 202, body });
    await model.kill('p1', [1]);
    expect(server.requests.at(-1)?.body).toEqual({ ranks: [1] });
    expect(current.pool?.ranks[0]).toBe(first);
    expect(current.pool?.ranks[1]).not.toBe(second);
    expect(current.pool?.ranks[1]).toEqual(busy);
  });

  it('asks for stacks and logs', async () => {
    const stack = { rank: 1, text: 'there' };
    const refusal = { code: 'x', message: 'No answer.', hint: 'Kill it.' };
    server.answers.set('GET pools/p1/ranks/1/stack', {
      status: 200,
      body: stack
    });
    server.answers.set('GET pools/p1/ranks/1/log', {
      status: 504,
      body: refusal
    });
    expect(await model.requests.stack('p1', 1)).toEqual(stack);
    await expect(model.requests.log('p1', 1)).rejects.toMatchObject(refusal);
  });

  it('knows the GPUs as they were listed last', async () => {
    expect(model.gpus?.reason).toBe('No GPU.');
    server.push(makeGpusMessage());
    await until(() => model.gpus?.gpus.length === 2);
  });

  it('does not stir for readings', async () => {
    const stir = jest.fn();
    model.changed.connect(stir);
    server.push({ type: 'usage', pools: {} });
    server.push({ type: 'sample', time: 1, values: {} });
    let isDone = false;
    model.telemetry.changed.connect(() => (isDone = true));
    await until(() => isDone);
    expect(stir).not.toHaveBeenCalled();
  });

  it('follows the current notebook', async () => {
    server.push({ type: 'pool', pool: makePool() });
    server.push({
      type: 'pool',
      pool: makePool({ id: 'p2', kernel_id: 'k2' })
    });
    await until(() => model.pools.size === 2);
    notebooks.open('b.ipynb', 'k2');
    expect(current.pool?.id).toBe('p2');
    notebooks.open('c.ipynb', null);
    expect(current.pool).toBeNull();
  });

  it('is the pool of another notebook that this one has attached to', async () => {
    const attachments = [makeAttachment(), makeAttachment({ kernel_id: 'k2' })];
    server.push({ type: 'pool', pool: makePool({ attachments }) });
    const before = makePool({ id: 'p0', kernel_id: 'k2', ended: 40 });
    server.push({ type: 'pool', pool: { ...before, state: 'COMPLETED' } });
    await until(() => model.pools.size === 2);
    notebooks.open('b.ipynb', 'k2');
    expect(current.pool?.id).toBe('p1');
    server.answers.set('POST pools/p1/interrupt', {
      status: 202,
      body: makePool({ attachments })
    });
    const done = model.interrupt('p1');
    expect(current.isPending).toBe(true);
    await done;
    expect(current.isPending).toBe(false);
  });

  it('prefers the newest pool of a kernel', async () => {
    server.push({ type: 'pool', pool: makePool({ id: 'new', created: 60 }) });
    server.push({ type: 'pool', pool: makePool({ id: 'old', created: 50 }) });
    await until(() => model.pools.size === 2);
    expect(current.pool?.id).toBe('new');
  });

  it('says beside the current notebook why an orphaned pool was not stopped', async () => {
    const pool = makePool({ kernel_id: 'k2', orphaned: 90 });
    server.push({ type: 'pool', pool });
    await until(() => model.pools.size === 1);
    const body = { code: 'pool_not_found', message: 'No pool p1.', hint: '' };
    server.answers.set('DELETE pools/p1', { status: 404, body });
    const done = model.stop('p1');
    expect(current.isPending).toBe(false);
    await done;
    expect(current.error).toMatchObject(body);
  });

  it('starts a pool and loads the magics into its kernel', async () => {
    const pool = makePool({ state: 'PENDING' });
    server.answers.set('POST pools', { status: 202, body: pool });
    const done = model.start({ num_ranks: 2 });
    expect(current.isPending).toBe(true);
    await done;
    expect(current.isPending).toBe(false);
    expect(current.pool?.state).toBe('PENDING');
    expect(notebooks.ran).toEqual(['k1 %load_ext jupyter_dist_server']);
  });

  it('says when the magics could not be loaded', async () => {
    server.answers.set('POST pools', { status: 202, body: makePool() });
    notebooks.refusal = 'No module.';
    await model.start({ num_ranks: 2 });
    expect(current.error?.hint).toBe('No module.');
  });

  it('has all cells run on ranks, and says when it cannot', async () => {
    await model.setMode('k1', true);
    expect(notebooks.ran).toEqual(['k1 %dist_mode -e']);
    expect(current.error).toBeNull();
    notebooks.refusal = 'UsageError: No pool is running.';
    await model.setMode('k1', false);
    expect(notebooks.ran.at(-1)).toBe('k1 %dist_mode -d');
    expect(current.error?.hint).toBe(notebooks.refusal);
  });

  it('keeps an error beside its notebook until the next request', async () => {
    const body = { code: 'full', message: 'No room.', hint: 'Stop one.' };
    server.answers.set('POST pools', { status: 409, body });
    await model.start({ num_ranks: 2 });
    expect(current.error).toMatchObject(body);
    expect(notebooks.ran).toEqual([]);

    notebooks.open('b.ipynb', 'k2');
    expect(current.error).toBeNull();
    notebooks.open('train.ipynb', 'k1');
    current.dismissError();
    expect(current.error).toBeNull();
  });

  it('forgets that a start was refused once its notebook has a pool', async () => {
    const body = { code: 'full', message: 'No room.', hint: 'Stop one.' };
    server.answers.set('POST pools', { status: 409, body });
    await model.start({ num_ranks: 2 });
    const other = makePool({ id: 'p2', kernel_id: 'k2' });
    server.push({ type: 'pool', pool: other });
    await until(() => model.pools.size === 1);
    expect(current.error).toMatchObject(body);
    server.push({ type: 'pool', pool: makePool() });
    await until(() => current.pool !== null);
    expect(current.error).toBeNull();
    // What was asked of that pool is another matter.
    server.answers.set('DELETE pools/p1', { status: 409, body });
    await model.stop('p1');
    server.push({ type: 'pool', pool: makePool({ version: 2 }) });
    await until(() => current.pool?.version === 2);
    expect(current.error).toMatchObject(body);
  });

  it('never goes back to an older version of a pool', async () => {
    server.push({ type: 'pool', pool: makePool({ version: 5 }) });
    await until(() => current.pool?.version === 5);
    server.answers.set('DELETE pools/p1', {
      status: 202,
      body: makePool({ version: 4, state: 'COMPLETING' })
    });
    await model.stop('p1');
    expect(current.pool).toMatchObject({ version: 5, state: 'RUNNING' });
  });

  it('takes the list after a reconnect as it is', async () => {
    server.push({ type: 'pool', pool: makePool({ version: 5 }) });
    await until(() => current.pool?.version === 5);
    server.greeting = {
      type: 'pools',
      pools: [makePool({ version: 1 })],
      time: 1000
    };
    server.dropStreams();
    await until(() => current.pool?.version === 1);
  });

  it('does not take another cell for one that was interrupted before a reconnect', async () => {
    const running = (msg_id: string) =>
      makePool({ ranks: [makeRank(0, { state: 'busy', msg_id })] });
    server.push({ type: 'pool', pool: running('r1') });
    await until(() => current.pool !== null);
    server.answers.set('POST pools/p1/interrupt', {
      status: 202,
      body: running('r1')
    });
    await model.interrupt('p1');
    expect(model.interruptedAt('p1')).not.toBeNull();
    server.greeting = { type: 'pools', pools: [running('r2')], time: 1000 };
    server.dropStreams();
    await until(() => current.pool?.ranks[0].msg_id === 'r2');
    expect(model.interruptedAt('p1')).toBeNull();
  });

  it('learns what time it is for the server', async () => {
    const ahead = 3600;
    server.greeting = {
      type: 'pools',
      pools: [],
      time: Date.now() / 1000 + ahead
    };
    server.dropStreams();
    await until(() => serverTime() > Date.now() / 1000 + ahead - 60);
    server.push({ type: 'time', time: Date.now() / 1000 });
    await until(() => serverTime() < Date.now() / 1000 + 60);
  });

  it('offers one rank per free GPU, two without GPUs, or what the user prefers', async () => {
    expect(model.defaultRanks).toBe(2);
    const lease = { user: 'ann', pid: 5, since: 1, pool: null, notebook: '' };
    const leases = { 'GPU-0': { ...lease, shared: false } };
    const message = makeGpusMessage({ leases });
    // While nobody watches, only the server knows how many are free.
    server.push(message);
    await until(() => model.gpus?.gpus.length === 2);
    expect(model.defaultRanks).toBeNull();
    model.telemetry.watch('gpus');
    server.push(message);
    server.push({ type: 'processes', gpus: {} });
    await until(() => model.defaultRanks === 1);
    const closed = { 'GPU-1': { words: 'drained by root', now: true } };
    server.push({ ...message, closed });
    await until(() => model.defaultRanks === null);
    server.push(message);
    await until(() => model.defaultRanks === 1);
    server.push({ type: 'processes', gpus: { 'GPU-1': [makeProcess()] } });
    // With none free, the server says who has them.
    await until(() => model.defaultRanks === null);
    model.setPreferredRanks(5);
    expect(model.defaultRanks).toBe(5);
  });

  it('keeps why the GPUs could not be listed', async () => {
    server.answers.set('GET gpus', { status: 500, body: 'oops' });
    server.dropStreams();
    await until(() => model.gpusError?.code === 'http_500');
  });
});
