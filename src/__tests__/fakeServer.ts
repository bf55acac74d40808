import { createServer } from 'http';
import type { IncomingMessage, Server, ServerResponse } from 'http';
import type { AddressInfo } from 'net';
import { WebSocket, WebSocketServer } from 'ws';

import { ServerConnection } from '@jupyterlab/services';

import type { StreamMessage } from '../model/contract';

interface IAnswer {
  status: number;
  /** Objects go out as JSON, strings as they are. */
  body: object | string;
}

interface ISeenRequest {
  method: string;
  path: string;
  body: unknown;
}

/**
 * A real HTTP and WebSocket server on this machine that answers what a test tells it to.
 */
export class FakeServer {
  static async start(): Promise<FakeServer> {
    const fake = new FakeServer();
    await fake.listen(0);
    return fake;
  }

  readonly requests: ISeenRequest[] = [];
  readonly answers = new Map<string, IAnswer>([
    [
      'GET status',
      { status: 200, body: { version: '0', host: 'h', pools: 0 } }
    ],
    [
      'GET gpus',
      {
        status: 200,
        body: { gpus: [], driver: null, reason: 'No GPU.', problems: [] }
      }
    ]
  ]);
  /** What the streams have been sent. */
  readonly asked: unknown[] = [];
  /** Sent to every new stream. */
  greeting: StreamMessage = {
    type: 'pools',
    pools: [],
    time: Date.now() / 1000
  };

  get settings(): ServerConnection.ISettings {
    const host = `127.0.0.1:${this._port}/base/`;
    return ServerConnection.makeSettings({
      baseUrl: `http://${host}`,
      wsUrl: `ws://${host}`,
      token: 'secret token',
      appendToken: true,
      WebSocket: WebSocket as unknown as typeof globalThis.WebSocket
    });
  }

  push(message: StreamMessage): void {
    this._streams.forEach(stream => stream.send(JSON.stringify(message)));
  }

  dropStreams(): void {
    this._streams.forEach(stream => stream.terminate());
  }

  async restart(): Promise<void> {
    await this.listen(this._port);
  }

  async listen(port: number): Promise<void> {
    this._http = createServer((request, response) => {
      void this._answer(request, response);
    });
    this._sockets = new WebSocketServer({ server: this._http });
    this._sockets.on('connection', (stream, request) => {
      this._see(request, null);
      this._streams.add(stream);
      stream.on('message', data => this.asked.push(JSON.parse(String(data))));
      stream.on('close', () => this._streams.delete(stream));
      stream.send(JSON.stringify(this.greeting));
    });
    await new Promise<void>(resolve =>
      this._http.listen(port, '127.0.0.1', resolve)
    );
    this._port = (this._http.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.dropStreams();
    this._sockets.close();
    this._http.closeAllConnections();
    await new Promise(resolve => this._http.close(resolve));
  }

  private _see({ method, url }: IncomingMessage, body: unknown): string {
    const path = (url ?? '').replace('/base/jupyter-dist/', '');
    this.requests.push({ method: method ?? '', path, body });
    return `${method} ${path.split('?')[0]}`;
  }

  private async _answer(
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<void> {
    let text = '';
    for await (const chunk of request) {
      text += String(chunk);
    }
    const key = this._see(request, text ? JSON.parse(text) : null);
    const { status, body } = this.answers.get(key) ?? {
      status: 404,
      body: '<html>Not found</html>'
    };
    response.writeHead(status);
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  private readonly _streams = new Set<WebSocket>();
  private _http!: Server;
  private _sockets!: WebSocketServer;
  private _port = 0;
}
