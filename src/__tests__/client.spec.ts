import { ApiError, Client } from '../model/restClient';
import { FakeServer } from './fakeServer';
import { makePool } from './samples';

describe('Client', () => {
  let server: FakeServer;
  let client: Client;

  beforeEach(async () => {
    server = await FakeServer.start();
    client = new Client(server.settings);
  });

  afterEach(() => server.stop());

  it('starts a pool for a kernel', async () => {
    server.answers.set('POST pools', { status: 202, body: makePool() });
    const pool = await client.start({ kernel_id: 'k1', num_ranks: 2 });
    expect(pool.id).toBe('p1');
    expect(server.requests[0].body).toEqual({ kernel_id: 'k1', num_ranks: 2 });
  });

  it.each([
    ['stop', 'DELETE pools/p1'],
    ['interrupt', 'POST pools/p1/interrupt'],
    ['restart', 'POST pools/p1/restart']
  ] as const)('can %s a pool', async (action, route) => {
    server.answers.set(route, { status: 202, body: makePool() });
    expect((await client[action]('p1')).id).toBe('p1');
  });

  it('passes on what the server says against a request', async () => {
    const body = {
      code: 'invalid',
      message: 'Need 4 ranks, only 2 GPUs.',
      hint: 'Ask for 2.',
      field: 'num_ranks'
    };
    server.answers.set('POST pools', { status: 400, body });
    const error = await client.start({ num_ranks: 4 }).catch(e => e);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ ...body, status: 400 });
  });

  it.each(['<html>', 'null', '"gone"'])(
    'names the status when the answer is not ours: %s',
    async body => {
      server.answers.set('GET gpus', { status: 502, body });
      const error = await client.gpus().catch(e => e);
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({
        code: 'http_502',
        message: 'The server responded with status 502.',
        hint: ''
      });
    }
  );

  it('says when an answer cannot be read', async () => {
    server.answers.set('GET start-schema', { status: 200, body: '<html>' });
    const error = await client.startSchema().catch(e => e);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'unreadable', status: 200 });
  });

  it('says when the server does not respond', async () => {
    const gone = new Client(server.settings);
    await server.stop();
    await expect(gone.status()).rejects.toMatchObject({
      code: 'unreachable',
      status: 0
    });
    await server.restart();
  });

  it('hands the token to the stream only where cookies do not reach', () => {
    expect(client.streamUrl).toMatch(/stream\?token=secret%20token$/);
    const settings = { ...server.settings, appendToken: false };
    expect(new Client(settings).streamUrl).toMatch(
      /\/base\/jupyter-dist\/stream$/
    );
  });
});
