import type { IDisposable } from '@lumino/disposable';

import { Client } from '../model/restClient';
import { QueueModel } from '../model/queue';
import { placesInLine } from '../model/queueContract';
import type { IJobEvent } from '../model/queueContract';
import { Stream } from '../model/stream';
import { Telemetry } from '../model/telemetry';
import { FakeServer } from './fakeServer';
import { makeGpusMessage } from './gpuSamples';
import { makeJob, makeRow } from './queueSamples';
import { makePool, until } from './samples';

describe('QueueModel', () => {
  let server: FakeServer;
  let stream: Stream;
  let queue: QueueModel;
  let watching: IDisposable;

  const answer = (key: string, body: object, status = 200) =>
    server.answers.set(key, { status, body });
  const asked = () =>
    server.requests
      .filter(({ path }) => /^(queue|jobs)/.test(path))
      .map(({ method, path }) => `${method} ${path}`)
      // What JupyterLab adds so that no cache answers.
      .map(request => request.replace(/[?&]\d+$/, ''));
  const countOf = (path: string) =>
    asked().filter(request => request.includes(path)).length;
  const now = Date.now() / 1000;

  beforeEach(async () => {
    server = await FakeServer.start();
    answer('GET queue', { rows: [makeRow()], count: 1, notices: [] });
    answer('GET jobs', { jobs: [], count: 0 });
    const client = new Client(server.settings);
    stream = new Stream(client, 5, 5);
    const topics = new Telemetry(stream);
    queue = new QueueModel(client, stream.received, topics);
  });

  afterEach(async () => {
    watching.dispose();
    stream.dispose();
    await server.stop();
  });

  /** Follow the queue, until it is known and the server is asked for news. */
  async function follow(what: 'all' | 'ends' = 'all'): Promise<void> {
    watching = queue.watch(what);
    await stream.connect();
    await until(() => server.asked.length > 0);
  }

  it('reads the queue once, and again when the server says that it has changed', async () => {
    await follow();
    expect(queue.rows).toEqual([makeRow()]);
    expect(queue.ended).toEqual([]);
    expect(asked()).toEqual([
      'GET jobs?states=COMPLETED,FAILED,CANCELLED,TIMEOUT,OUT_OF_MEMORY,NODE_FAIL&order=ended',
      'GET queue?start=1'
    ]);
    expect(server.asked).toEqual([{ watch: ['jobs'] }]);

    answer('GET queue', { rows: [], count: 0, notices: [] });
    const old = makeJob({ id: 3, ended: now - 100_000 });
    const jobs = [makeJob({ ended: now }), makeJob({ id: 4, ended: now - 9 })];
    answer('GET jobs', { jobs: [...jobs, old], count: 3 });
    server.push({ type: 'jobs', seq: 7, events: [], pending: 0 });
    await until(() => queue.rows?.length === 0);
    expect(queue.ended).toEqual(jobs);
    // A reason has changed: no job has ended since.
    server.push({ type: 'jobs', seq: 7, events: [], pending: 3 });
    await until(() => queue.pending === 3);
    await until(() => countOf('queue') === 3);
    expect(countOf('jobs')).toBe(2);
  });

  it('looks until a stopped process goes on, of which nothing tells', async () => {
    const notice = 'The dispatcher (pid 7) is stopped and starts no job.';
    answer('GET queue', { rows: [], count: 0, notices: [notice] });
    await follow();
    await until(() => queue.notices[0] === notice);
    answer('GET queue', { rows: [], count: 0, notices: [] });
    await until(() => !queue.notices.length);
  });

  it('looks again when GPUs are taken, or a pool changes its state', async () => {
    await follow();
    server.push(makeGpusMessage());
    await until(() => countOf('queue') === 2);
    server.push({ type: 'pool', pool: makePool() });
    await until(() => countOf('queue') === 3);
    server.push({ type: 'pool', pool: makePool({ version: 2 }) });
    server.push({ type: 'pool', pool: makePool({ state: 'COMPLETING' }) });
    await until(() => countOf('queue') === 4);
    expect(countOf('jobs')).toBe(1);
  });

  it('reads only what has ended for those who want no more', async () => {
    await follow('ends');
    expect(countOf('queue')).toBe(0);
    expect(queue.rows).toBeNull();
    watching.dispose();
    await until(() => server.asked.length === 2);
    expect(server.asked[1]).toEqual({ watch: [] });
  });

  it('asks for no news that the server would refuse, and tries again when told to', async () => {
    const error = { code: 'http_403', message: 'No.', hint: 'Ask.' };
    answer('GET jobs', error, 403);
    watching = queue.watch('all');
    await stream.connect();
    await until(() => queue.error !== null);
    expect(queue.error).toMatchObject(error);
    expect(server.asked).toEqual([]);
    answer('GET jobs', { jobs: [], count: 0 });
    queue.reload();
    await until(() => queue.error === null && queue.rows !== null);
  });

  it('is silent while the page is hidden', async () => {
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    watching = queue.watch('all');
    await stream.connect();
    await until(() => stream.connection.state === 'live');
    expect(asked()).toEqual([]);
    hidden.mockRestore();
    document.dispatchEvent(new Event('visibilitychange'));
    await until(() => queue.rows !== null);
    await until(() => server.asked.length > 0);
  });

  it('is told what jobs do while the page is hidden, and reads it when it is seen', async () => {
    await follow();
    const happened = jest.fn();
    queue.happened.connect((_, events) => happened(events.length));
    const before = asked().length;
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    document.dispatchEvent(new Event('visibilitychange'));
    const event: IJobEvent = {
      ...{ seq: 1, job: 1, label: '1', name: '', at: now },
      ...{ state: 'RUNNING', was: 'PENDING', reason: '' }
    };
    server.push({ type: 'jobs', seq: 1, events: [event], pending: 0 });
    await until(() => happened.mock.calls.length > 0);
    expect(server.asked).toEqual([{ watch: ['jobs'] }]);
    expect(asked()).toHaveLength(before);
    hidden.mockRestore();
    document.dispatchEvent(new Event('visibilitychange'));
    await until(() => asked().length > before);
  });

  it('acts on one job after the other, and says what was left', async () => {
    await follow();
    const left = ['Job 2_1 had ended: FAILED.'];
    answer('DELETE jobs/1', { jobs: [], count: 0, left: [] }, 202);
    answer('DELETE jobs/2_1', { jobs: [], count: 0, left }, 202);
    answer('POST jobs/1/hold', { jobs: [], count: 0 }, 202);
    await queue.act('cancel', ['1', '2_1']);
    expect(queue.actionError?.message).toBe(left[0]);
    await queue.act('hold', ['1']);
    expect(queue.actionError).toBeNull();
    await queue.act('release', ['1']);
    expect(queue.actionError?.code).toBe('http_404');
    queue.dismissError();
    expect(queue.actionError).toBeNull();
    expect(asked().slice(2)).toEqual([
      'DELETE jobs/1',
      'DELETE jobs/2_1',
      'POST jobs/1/hold',
      'POST jobs/1/release'
    ]);
  });
});

it('those that wait for something else have no place in line', () => {
  const [first, held, second] = [
    makeRow(),
    makeRow({ reason: 'JobHeldUser' }),
    makeRow({ reason: 'Priority' })
  ];
  const places = placesInLine([
    makeRow({ state: 'RUNNING' }),
    first,
    held,
    second
  ]);
  expect([...places]).toEqual([
    [first, 1],
    [second, 2]
  ]);
});
