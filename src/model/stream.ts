import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { ApiError } from './client';
import type { Client } from './client';
import type { StreamMessage } from './contract';
import type { Topic } from './gpuContract';
import type { Connection } from './tokens';

/** `WebSocket.OPEN`, whichever class the server settings give. */
const SOCKET_OPEN = 1;
/** Milliseconds without a message or an answer, after which the server cannot be reached. */
const SILENCE = 30000;

/**
 * The one WebSocket of this browser: it follows the server's pools and comes back after a loss.
 */
export class Stream implements IDisposable {
  constructor(options: Stream.IOptions) {
    this._client = options.client;
    this._minDelay = options.minDelay ?? 1000;
    this._maxDelay = options.maxDelay ?? 30000;
  }

  get received(): ISignal<this, StreamMessage> {
    return this._received;
  }

  get connectionChanged(): ISignal<this, Connection> {
    return this._connectionChanged;
  }

  get connection(): Connection {
    return this._connection;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /**
   * Connect now, unless connected or about to be.
   */
  async connect(): Promise<void> {
    if (this._isDisposed || this._isOpening || this._socket) {
      return;
    }
    this._cancelRetry();
    this._isOpening = true;
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), SILENCE);
    try {
      // A WebSocket that fails does not say why; this request does.
      await this._client.status(limit.signal);
    } catch (error) {
      this._isOpening = false;
      this._onRefused(error);
      return;
    } finally {
      clearTimeout(timer);
    }
    this._isOpening = false;
    if (!this._isDisposed) {
      this._open();
    }
  }

  /**
   * Ask for messages on these topics, from now on and on every new connection.
   */
  watch(topics: readonly Topic[]): void {
    if (topics.join() !== this._topics.join()) {
      this._topics = topics;
      this._askFor(topics);
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._cancelRetry();
    clearTimeout(this._watchdog);
    this._socket?.close();
    this._socket = null;
    Signal.clearData(this);
  }

  private _open(): void {
    const socket = new this._client.serverSettings.WebSocket(
      this._client.streamUrl
    );
    this._socket = socket;
    this._expectMessage(socket);
    socket.onopen = () => {
      if (this._socket === socket && this._topics.length) {
        this._askFor(this._topics);
      }
    };
    socket.onmessage = (event: MessageEvent<string>) => {
      if (this._socket !== socket) {
        return;
      }
      const message = JSON.parse(event.data) as StreamMessage;
      this._tellsTime ||= message.type === 'time';
      this._expectMessage(socket);
      this._attempts = 0;
      this._received.emit(message);
      this._setConnection({ state: 'live' });
    };
    socket.onclose = () => this._drop(socket, Date.now());
  }

  /** A network that is gone, or a server that is stopped, does not close its connections. */
  private _expectMessage(socket: WebSocket): void {
    clearTimeout(this._watchdog);
    // A server that is older than this page may have nothing to say for hours.
    if (this._tellsTime) {
      const since = Date.now();
      this._watchdog = setTimeout(
        () => this._onSilence(socket, since),
        SILENCE
      );
    }
  }

  private _onSilence(socket: WebSocket, since: number): void {
    if (document.hidden) {
      // A page that nobody sees would not reconnect, and miss what is told later.
      this._expectMessage(socket);
    } else {
      this._drop(socket, since);
      socket.close();
    }
  }

  private _drop(socket: WebSocket, since: number): void {
    if (this._socket === socket) {
      clearTimeout(this._watchdog);
      this._socket = null;
      this._onLost(since);
    }
  }

  private _askFor(topics: readonly Topic[]): void {
    if (this._socket?.readyState === SOCKET_OPEN) {
      this._socket.send(JSON.stringify({ watch: topics }));
    }
  }

  private _onRefused(error: unknown): void {
    if (this._isDisposed) {
      return;
    }
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 404) {
      this._setConnection({ state: 'missing' });
    } else if (
      error instanceof ApiError &&
      (status === 401 || status === 403)
    ) {
      this._setConnection({ state: 'refused', error });
      // Who logs in does so on another page, so nobody would tell us.
      this._retryIn(this._maxDelay);
    } else {
      this._onLost(Date.now());
    }
  }

  private _onLost(since: number): void {
    if (this._connection.state !== 'stale') {
      this._setConnection({ state: 'stale', since });
    }
    const delay = Math.min(
      this._maxDelay,
      this._minDelay * 2 ** this._attempts++
    );
    this._retryIn(delay);
  }

  private _retryIn(delay: number): void {
    // The random part keeps many browsers from coming back at the same moment.
    this._retry = setTimeout(
      () => this._reconnect(),
      delay * (0.5 + Math.random() / 2)
    );
  }

  private _reconnect(): void {
    if (document.hidden) {
      document.addEventListener('visibilitychange', this._onVisible);
    } else {
      void this.connect();
    }
  }

  private readonly _onVisible = (): void => {
    if (!document.hidden) {
      void this.connect();
    }
  };

  private _cancelRetry(): void {
    clearTimeout(this._retry);
    document.removeEventListener('visibilitychange', this._onVisible);
  }

  private _setConnection(connection: Connection): void {
    if (connection.state === 'live' && this._connection.state === 'live') {
      return;
    }
    this._connection = connection;
    this._connectionChanged.emit(connection);
  }

  private readonly _client: Client;
  private readonly _minDelay: number;
  private readonly _maxDelay: number;
  private readonly _received = new Signal<this, StreamMessage>(this);
  private readonly _connectionChanged = new Signal<this, Connection>(this);
  private _connection: Connection = { state: 'connecting' };
  private _socket: WebSocket | null = null;
  private _retry: ReturnType<typeof setTimeout> | undefined;
  private _watchdog: ReturnType<typeof setTimeout> | undefined;
  private _topics: readonly Topic[] = [];
  private _attempts = 0;
  private _isOpening = false;
  /** Whether the server tells the time regularly. */
  private _tellsTime = false;
  private _isDisposed = false;
}

export namespace Stream {
  export interface IOptions {
    client: Client;
    /** Milliseconds before the first retry. */
    minDelay?: number;
    /** Milliseconds between retries at most. */
    maxDelay?: number;
  }
}
