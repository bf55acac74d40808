import { JSONExt } from '@lumino/coreutils';
import type { PartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { Client } from './client';
import type {
  IApiError,
  ILog,
  IPool,
  IRestartChoice,
  IRank,
  IStack,
  IStartChoice,
  IStartSchema,
  StreamMessage
} from './contract';
import { poolOf } from './contract';
import type { IGpu, IInventory, NodeGpus } from './gpuContract';
import { countFree } from './gpuUse';
import { KnownGpus } from './knownGpus';
import type { INotebookKernels } from './notebook';
import { PoolRequests } from './poolRequests';
import type { IQueueModel } from './queue';
import { correctServerTime, serverTime, setServerTime } from './serverTime';
import type { Stream } from './stream';
import type { ITelemetry } from './telemetry';
import { LOAD, MAX_RANKS } from './tokens';
import type { Connection, IPoolsModel } from './tokens';
import { trans } from './trans';
import type { IVariables } from './variablesContract';

/**
 * Keeps the server's pools.
 */
export class PoolsModel implements IPoolsModel {
  constructor(options: PoolsModel.IOptions) {
    this._client = options.client;
    this._stream = options.stream;
    this._gpus = new KnownGpus(options.client);
    this._kernels = options.kernels;
    this.telemetry = options.telemetry;
    this.queue = options.queue;
    this._requests = new PoolRequests(
      options.kernels,
      pool => this._keep(pool),
      () => this._emit()
    );
    this._stream.received.connect(this._onMessage, this);
    this._stream.connectionChanged.connect(this._onConnection, this);
  }

  readonly telemetry: ITelemetry;
  readonly queue: IQueueModel;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get connection(): Connection {
    return this._stream.connection;
  }

  get isKnown(): boolean {
    return this._isKnown;
  }

  get pools(): ReadonlyMap<string, IPool> {
    return this._pools;
  }

  get gpus(): IInventory | null {
    return this._gpus.inventory;
  }

  get nodes(): NodeGpus {
    return this._gpus.nodes;
  }

  get allGpus(): readonly IGpu[] {
    return this._gpus.all;
  }

  get gpusError(): IApiError | null {
    return this._gpus.error;
  }

  errorOf(kernelId: string): IApiError | null {
    return this._requests.errorOf(kernelId);
  }

  forgetError(kernelId: string): void {
    this._requests.forgetError(kernelId);
  }

  hasRequest(id: string): boolean {
    return this._requests.isPending(id);
  }

  interruptedAt(poolId: string): number | null {
    const interrupt = this._interrupts.get(poolId);
    const goesOn = requestsOf(this._pools.get(poolId)).some(request =>
      interrupt?.requests.includes(request)
    );
    return goesOn ? (interrupt?.since ?? null) : null;
  }

  get defaultRanks(): number | null {
    const gpus = this.gpus?.gpus;
    const ranks =
      this._preferredRanks ||
      (gpus?.length === 0 ? 2 : countFree(gpus ?? [], this.telemetry));
    return ranks ? Math.min(ranks, MAX_RANKS) : null;
  }

  setPreferredRanks(ranks: number): void {
    this._preferredRanks = ranks;
    this._emit();
  }

  get waitLimit(): number {
    return this._waitLimit;
  }

  setWaitLimit(seconds: number): void {
    this._waitLimit = seconds;
    this._emit();
  }

  reconnect(): void {
    void this._stream.connect();
  }

  async start(
    choice: IStartChoice,
    kernelId = this._kernels.current ?? ''
  ): Promise<void> {
    if (!kernelId) {
      return;
    }
    const isStarted = await this._requests.send(
      kernelId,
      () => this._client.start({ ...choice, kernel_id: kernelId }),
      kernelId,
      choice
    );
    if (isStarted) {
      await this._requests.runMagic(
        kernelId,
        LOAD,
        trans.__(
          'The ranks start, but the magics could not be loaded into this notebook.'
        )
      );
    }
  }

  async stop(poolId: string): Promise<void> {
    await this._requests.send(poolId, () => this._client.stop(poolId));
  }

  async interrupt(poolId: string, ranks?: number[]): Promise<void> {
    if (!ranks) {
      this._interrupts.set(poolId, {
        since: serverTime(),
        requests: requestsOf(this._pools.get(poolId))
      });
    }
    const isTaken = await this._requests.send(poolId, () =>
      this._client.interrupt(poolId, ranks)
    );
    if (!isTaken) {
      this._interrupts.delete(poolId);
      this._emit();
    }
  }

  async kill(poolId: string, ranks: number[]): Promise<void> {
    await this._requests.send(poolId, () => this._client.kill(poolId, ranks));
  }

  stack(poolId: string, rank: number): Promise<IStack> {
    return this._client.stack(poolId, rank);
  }

  log(poolId: string, rank: number): Promise<ILog> {
    return this._client.log(poolId, rank);
  }

  variables(poolId: string): Promise<IVariables> {
    return this._client.variables(poolId);
  }

  checkVariables(poolId: string): Promise<IVariables> {
    return this._client.checkVariables(poolId);
  }

  startSchema(): Promise<IStartSchema> {
    return this._client.startSchema();
  }

  async restart(poolId: string, which: IRestartChoice = {}): Promise<void> {
    await this._requests.send(poolId, () =>
      this._client.restart(poolId, which)
    );
  }

  async setMode(kernelId: string, isOn: boolean): Promise<void> {
    await this._requests.runMagic(
      kernelId,
      `%dist_mode ${isOn ? '-e' : '-d'}`,
      trans.__('Could not switch "Run All Cells on Ranks".')
    );
  }

  private _onMessage(_: Stream, message: StreamMessage): void {
    switch (message.type) {
      case 'pools':
        setServerTime(message.time);
        this._isKnown = true;
        this._pools = new Map(
          message.pools.map(pool => [pool.id, this._withKnownRanks(pool)])
        );
        break;
      case 'pool':
        this._keep(message.pool);
        break;
      case 'pool_removed':
        this._pools = new Map(this._pools);
        this._pools.delete(message.id);
        break;
      case 'time':
        correctServerTime(message.time);
        return;
      case 'gpus':
        this._gpus.keep(message.inventory, message.nodes ?? {});
        break;
      default:
        return;
    }
    this._requests.forgetRefusedStarts(
      kernelId => poolOf(kernelId, this._pools.values())?.ended === null
    );
    this._emit();
  }

  /** An answer and the stream may overtake each other. */
  private _keep(pool: IPool): void {
    const known = this._pools.get(pool.id);
    if (!known || pool.version >= known.version) {
      const news = this._withKnownRanks(pool);
      this._pools = new Map(this._pools).set(pool.id, news);
    }
  }

  /** A rank that did not change stays the same object, so that it need not be drawn again. */
  private _withKnownRanks(pool: IPool): IPool {
    const known = this._pools.get(pool.id)?.ranks ?? [];
    const ranks = pool.ranks.map((rank, index) =>
      index in known && isSame(rank, known[index]) ? known[index] : rank
    );
    return { ...pool, ranks };
  }

  private _onConnection(_: Stream, connection: Connection): void {
    if (connection.state === 'live') {
      void this._gpus.load().then(() => this._emit());
    }
    this._emit();
  }

  private _emit(): void {
    this._changed.emit();
  }

  private readonly _client: Client;
  private readonly _stream: Stream;
  private readonly _kernels: INotebookKernels;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _requests: PoolRequests;
  private readonly _gpus: KnownGpus;
  /** By pool: since when its cell is interrupted, in Unix seconds, and the requests that ran it. */
  private readonly _interrupts = new Map<
    string,
    { since: number; requests: (string | null)[] }
  >();
  private _pools = new Map<string, IPool>();
  private _isKnown = false;
  private _preferredRanks = 0;
  private _waitLimit = 10;
}

/** The ids of the requests that ranks are busy with. */
function requestsOf(pool: IPool | undefined): (string | null)[] {
  const busy = pool?.ranks.filter(({ state }) => state === 'busy') ?? [];
  return busy.map(({ msg_id }) => msg_id);
}

function isSame(rank: IRank, known: IRank): boolean {
  return JSONExt.deepEqual(
    rank as unknown as PartialJSONValue,
    known as unknown as PartialJSONValue
  );
}

export namespace PoolsModel {
  export interface IOptions {
    client: Client;
    stream: Stream;
    kernels: INotebookKernels;
    telemetry: ITelemetry;
    queue: IQueueModel;
  }
}
