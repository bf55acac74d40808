import { Client } from '../model/restClient';
import type { StreamMessage } from '../model/contract';
import { Stream } from '../model/stream';
import { FakeServer } from './fakeServer';
import { makePool, until } from './samples';

describe('Stream', () => {
  let server: FakeServer;
  let stream: Stream;
  let received: StreamMessage[];

  beforeEach(async () => {
    server = await FakeServer.start();
    stream = new Stream(new Client(server.settings), 10, 40);
    received = [];
    stream.received.connect((_, message) => received.push(message));
  });

  afterEach(async () => {
    stream.dispose();
    await server.stop();
  });

  const state = () => stream.connection.state;

  it('is live with the first message, and passes on the next', async () => {
    expect(state()).toBe('connecting');
    await stream.connect();
    await until(() => state() === 'live');
    server.push({ type: 'pool', pool: makePool() });
    await until(() => received.length === 2);
    expect(received.map(({ type }) => type)).toEqual(['pools', 'pool']);
  });

  it('opens one socket, however often it is asked', async () => {
    await Promise.all([stream.connect(), stream.connect()]);
    await until(() => state() === 'live');
    await stream.connect();
    expect(
      server.requests.filter(({ path }) => path.startsWith('stream'))
    ).toHaveLength(1);
  });

  it('says that the extension is missing, and does not ask again by itself', async () => {
    server.answers.delete('GET status');
    await stream.connect();
    expect(state()).toBe('missing');
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(server.requests).toHaveLength(1);
  });

  it('says why it is refused', async () => {
    server.answers.set('GET status', {
      status: 403,
      body: { message: 'Forbidden' }
    });
    await stream.connect();
    expect(stream.connection).toMatchObject({
      state: 'refused',
      error: { message: 'Forbidden' }
    });
  });

  it('comes back once it is let in', async () => {
    const letIn = server.answers.get('GET status')!;
    server.answers.set('GET status', { status: 403, body: {} });
    await stream.connect();
    const states: string[] = [];
    stream.connectionChanged.connect((_, { state }) => states.push(state));
    await until(() => server.requests.length > 2);
    expect(new Set(states)).toEqual(new Set(['refused']));
    server.answers.set('GET status', letIn);
    await until(() => state() === 'live');
  });

  it('is stale since the loss, and comes back after a server restart', async () => {
    await stream.connect();
    await until(() => state() === 'live');
    await server.stop();
    await until(() => state() === 'stale');
    const lost = stream.connection;
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(stream.connection).toBe(lost);
    await server.restart();
    await until(() => state() === 'live');
  });

  describe('that hears nothing any more', () => {
    const timers = () =>
      jest.mocked(setTimeout).mock.calls.filter(([, delay]) => delay === 30000);
    const last = () => timers().at(-1)![0] as () => void;

    beforeEach(async () => {
      jest.spyOn(globalThis, 'setTimeout');
      await stream.connect();
      await until(() => state() === 'live');
      server.push({ type: 'time', time: 1 });
      await until(() => received.length === 2);
    });

    afterEach(() => jest.restoreAllMocks());

    it('is lost, and comes back', async () => {
      last()();
      expect(state()).toBe('stale');
      await until(() => state() === 'live');
    });

    it('is kept while nobody sees the page', async () => {
      jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
      const before = timers().length;
      last()();
      expect(state()).toBe('live');
      expect(timers()).toHaveLength(before + 1);
    });
  });

  it('asks for what is watched, also on the next connection', async () => {
    await stream.connect();
    await until(() => state() === 'live');
    expect(server.asked).toEqual([]);
    stream.watch(['gpus']);
    stream.watch(['gpus']);
    await until(() => server.asked.length === 1);
    server.dropStreams();
    await until(() => server.asked.length === 2);
    stream.watch([]);
    await until(() => server.asked.length === 3);
    expect(server.asked).toEqual([
      { watch: ['gpus'] },
      { watch: ['gpus'] },
      { watch: [] }
    ]);
  });

  it('waits with reconnecting while the page is hidden', async () => {
    await stream.connect();
    await until(() => state() === 'live');
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    const before = server.requests.length;
    server.dropStreams();
    await until(() => state() === 'stale');
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(server.requests).toHaveLength(before);
    hidden.mockRestore();
    document.dispatchEvent(new Event('visibilitychange'));
    await until(() => state() === 'live');
  });
});
