import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { asApiError } from './restClient';
import type { Client } from './restClient';
import type { StreamMessage } from './contract';
import type { Topic } from './gpuContract';
import type { Connection } from './tokens';

/** `WebSocket.OPEN`, whichever class the server settings give. */
const SOCKET_OPEN = 1;
/** Milliseconds without a message or an answer until the server counts as lost. */
const SILENCE = 30000;

/** The one WebSocket of this page; it connects again after a loss. */
export class Stream implements IDisposable {
  constructor(
    private readonly _client: Client,
    /** Milliseconds before the first retry. */
    private readonly _minDelay = 1000,
    /** The longest pause between retries, in milliseconds. */
    private readonly _maxDelay = 30000
  ) {}

  readonly received = new Signal<unknown, StreamMessage>(this);
  readonly connectionChanged = new Signal<unknown, Connection>(this);
  connection: Connection = { state: 'connecting' };
  isDisposed = false;

  /** Connect now, unless connected or about to be. */
  async connect(): Promise<void> {
    if (this.isDisposed || this._isOpening || this._socket) {
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
    if (!this.isDisposed) {
      this._open();
    }
  }

  /** Ask for messages on these topics, from now on and on every new connection. */
  watch(topics: readonly Topic[]): void {
    if (topics.join() !== this._topics.join()) {
      this._topics = topics;
      this._askFor(topics);
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
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
      this._expectMessage(socket);
      this._attempts = 0;
      this.received.emit(message);
      this._setConnection({ state: 'live' });
    };
    socket.onclose = () => this._drop(socket, Date.now());
  }

  /** A lost network or a stopped server does not close its connections. The server tells the time regularly. */
  private _expectMessage(socket: WebSocket): void {
    const since = Date.now();
    clearTimeout(this._watchdog);
    this._watchdog = setTimeout(() => this._onSilence(socket, since), SILENCE);
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
    if (this.isDisposed) {
      return;
    }
    const refusal = asApiError(error);
    if (refusal.status === 404) {
      this._setConnection({ state: 'missing' });
    } else if (refusal.status === 401 || refusal.status === 403) {
      this._setConnection({ state: 'refused', error: refusal });
      // Who logs in does so on another page, so nobody would tell us.
      this._retryIn(this._maxDelay);
    } else {
      this._onLost(Date.now());
    }
  }

  private _onLost(since: number): void {
    if (this.connection.state !== 'stale') {
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
    if (connection.state === 'live' && this.connection.state === 'live') {
      return;
    }
    this.connection = connection;
    this.connectionChanged.emit(connection);
  }

  private _socket: WebSocket | null = null;
  private _retry: ReturnType<typeof setTimeout> | undefined;
  private _watchdog: ReturnType<typeof setTimeout> | undefined;
  private _topics: readonly Topic[] = [];
  private _attempts = 0;
  private _isOpening = false;
}
