import { JSONExt } from '@lumino/coreutils';
import type { PartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { allGpus } from './cards';
import { asApiError } from './restClient';
import type { Client } from './restClient';
import type {
  IAgentCall,
  IApiError,
  IPool,
  IRestartChoice,
  IRank,
  IStartChoice,
  StreamMessage
} from './contract';
import { poolOf } from './contract';
import type { IGpu, IInventory, NodeGpus } from './gpuContract';
import { countFree } from './gpuUse';
import type { INotebookKernels } from './notebook';
import type { IQueueModel } from './queue';
import { correctServerTime, serverTime, setServerTime } from './serverTime';
import type { Stream } from './stream';
import type { ITelemetry } from './telemetry';
import { LOAD, MAX_RANKS } from './tokens';
import type { Connection } from './tokens';
import { trans } from './trans';

/** As many calls of agents are shown. */
const MOST_CALLS = 50;

/** What the server is asked about pools; all reject with an `IApiError`. */
export type PoolRequests = Pick<
  Client,
  'startSchema' | 'stack' | 'log' | 'variables' | 'checkVariables'
>;

/** The pools and GPUs of the server, and the requests that change pools. */
export class PoolsModel {
  constructor(options: PoolsModel.IOptions) {
    this._client = options.client;
    this._stream = options.stream;
    this._kernels = options.kernels;
    this.telemetry = options.telemetry;
    this.queue = options.queue;
    this._stream.received.connect(this._onMessage, this);
    this._stream.connectionChanged.connect(this._onConnection, this);
  }

  /** Emitted after any change below. */
  readonly changed = new Signal<unknown, void>(this);
  readonly telemetry: ITelemetry;
  readonly queue: IQueueModel;
  /** Whether the server has sent its list of pools. */
  isKnown = false;
  /** Another object after each change. */
  pools: ReadonlyMap<string, IPool> = new Map();
  /** The GPUs of the server's machine; null until they are known. */
  gpus: IInventory | null = null;
  /** The GPUs of other machines with ranks, while somebody watches. */
  nodes: NodeGpus = {};
  /** All of both. */
  allGpus: readonly IGpu[] = [];
  /** Why the GPUs could not be listed. */
  gpusError: IApiError | null = null;
  /** What coding agents have called, the last one first; another object after each change. */
  agentCalls: readonly IAgentCall[] = [];
  /** Seconds after which ranks wait too long for another one. */
  waitLimit = 10;

  get connection(): Connection {
    return this._stream.connection;
  }

  get requests(): PoolRequests {
    return this._client;
  }

  /** How many ranks to offer for a new pool; null where only the server can tell, or all GPUs are taken. */
  get defaultRanks(): number | null {
    const gpus = this.gpus?.gpus;
    const ranks =
      this._preferredRanks ||
      (gpus?.length === 0 ? 2 : countFree(gpus ?? [], this.telemetry));
    return ranks ? Math.min(ranks, MAX_RANKS) : null;
  }

  /** Set by the user; 0 means one per free GPU, or 2 without a GPU. */
  setPreferredRanks(ranks: number): void {
    this._preferredRanks = ranks;
    this.changed.emit();
  }

  setWaitLimit(seconds: number): void {
    this.waitLimit = seconds;
    this.changed.emit();
  }

  /** What went wrong with the last request from a kernel's notebook. */
  errorOf(kernelId: string): IApiError | null {
    return this._errors.get(kernelId) ?? null;
  }

  forgetError(kernelId: string): void {
    this._errors.delete(kernelId);
    this.changed.emit();
  }

  /** Whether a request for a pool, or for a kernel that is to get one, waits for its answer. */
  hasRequest(id: string): boolean {
    return this._pending.has(id);
  }

  /** When the pool's cell was interrupted, in Unix seconds; null once it has ended. */
  interruptedAt(poolId: string): number | null {
    const interrupt = this._interrupts.get(poolId);
    const goesOn = requestsOf(this.pools.get(poolId)).some(request =>
      interrupt?.requests.includes(request)
    );
    return goesOn ? (interrupt?.since ?? null) : null;
  }

  /** Connect again when the server was missing, refused or lost. */
  reconnect(): void {
    void this._stream.connect();
  }

  /** Start a pool for a kernel's notebook, by default the current one's. */
  async start(
    choice: IStartChoice,
    kernelId = this._kernels.current ?? ''
  ): Promise<void> {
    if (!kernelId) {
      return;
    }
    const isStarted = await this._send(
      kernelId,
      this._client.start({ ...choice, kernel_id: kernelId }),
      kernelId,
      choice
    );
    if (isStarted) {
      await this._runMagic(
        kernelId,
        LOAD,
        trans.__(
          'The ranks start, but the magics could not be loaded into this notebook.'
        )
      );
    }
  }

  /** Stop a pool, or cancel its start. */
  async stop(poolId: string): Promise<void> {
    await this._send(poolId, this._client.stop(poolId));
  }

  /** Without `ranks`, all of them. */
  async interrupt(poolId: string, ranks?: number[]): Promise<void> {
    if (!ranks) {
      this._interrupts.set(poolId, {
        since: serverTime(),
        requests: requestsOf(this.pools.get(poolId))
      });
    }
    if (!(await this._send(poolId, this._client.interrupt(poolId, ranks)))) {
      this._interrupts.delete(poolId);
      this.changed.emit();
    }
  }

  /** End ranks at once; the pool goes on without them. */
  async kill(poolId: string, ranks: number[]): Promise<void> {
    await this._send(poolId, this._client.kill(poolId, ranks));
  }

  async restart(poolId: string, which: IRestartChoice = {}): Promise<void> {
    await this._send(poolId, this._client.restart(poolId, which));
  }

  /** Add ranks, or end the last ones; the present number cancels what still waits. */
  async resize(poolId: string, ranks: number, wait = false): Promise<void> {
    await this._send(poolId, this._client.resize(poolId, ranks, wait));
  }

  /** Give the GPUs to others, and keep what is on them; or stop waiting to be resumed. */
  async park(poolId: string): Promise<void> {
    await this._send(poolId, this._client.park(poolId));
  }

  async resume(poolId: string): Promise<void> {
    await this._send(poolId, this._client.resume(poolId));
  }

  /** Have all cells of a notebook run on its ranks, or only those that say so. */
  setMode(kernelId: string, isOn: boolean): Promise<void> {
    return this._runMagic(
      kernelId,
      `%dist_mode ${isOn ? '-e' : '-d'}`,
      trans.__('Could not switch "Run All Cells on Ranks".')
    );
  }

  /** Keep the pool that a request answers with, or its error beside the notebook that asked. */
  private async _send(
    target: string,
    answer: Promise<IPool>,
    asking = this._kernels.current ?? '',
    choice?: IStartChoice
  ): Promise<boolean> {
    this._pending.add(target);
    this._errors.delete(asking);
    this.changed.emit();
    try {
      this._keep(await answer);
      return true;
    } catch (reason) {
      const error = asApiError(reason);
      error.choice = choice;
      this._errors.set(asking, error);
      return false;
    } finally {
      this._pending.delete(target);
      this.changed.emit();
    }
  }

  /** Run a magic in a notebook's kernel; the message is for when that fails. */
  private async _runMagic(
    kernelId: string,
    line: string,
    message: string
  ): Promise<void> {
    const hint = await this._kernels.runMagic(kernelId, line);
    if (hint !== null) {
      this._errors.set(kernelId, { code: 'magic_failed', message, hint });
      this.changed.emit();
    }
  }

  private _onMessage(_: unknown, message: StreamMessage): void {
    switch (message.type) {
      case 'pools':
        setServerTime(message.time);
        this.isKnown = true;
        this.pools = new Map(
          message.pools.map(pool => [pool.id, this._withKnownRanks(pool)])
        );
        break;
      case 'pool':
        this._keep(message.pool);
        break;
      case 'pool_removed':
        this.pools = new Map(
          [...this.pools].filter(([id]) => id !== message.id)
        );
        break;
      case 'agents':
        this._keepCalls(message.agents, message.complete);
        break;
      case 'time':
        correctServerTime(message.time);
        return;
      case 'gpus':
        this._keepGpus(message.inventory, message.nodes ?? {});
        break;
      default:
        return;
    }
    // A refused start does not matter any more where there is a pool.
    for (const [kernelId, { choice }] of this._errors) {
      if (choice && poolOf(kernelId, this.pools.values())?.ended === null) {
        this._errors.delete(kernelId);
      }
    }
    this.changed.emit();
  }

  /** An answer and the stream may overtake each other. */
  private _keep(pool: IPool): void {
    const known = this.pools.get(pool.id);
    if (!known || pool.version >= known.version) {
      const news = this._withKnownRanks(pool);
      this.pools = new Map(this.pools).set(pool.id, news);
    }
  }

  /** A rank that did not change stays the same object, so that it need not be drawn again. */
  private _withKnownRanks(pool: IPool): IPool {
    const known = this.pools.get(pool.id)?.ranks ?? [];
    const ranks = pool.ranks.map((rank, index) =>
      index in known && isSame(rank, known[index]) ? known[index] : rank
    );
    return { ...pool, ranks };
  }

  private _keepGpus(inventory: IInventory, nodes: NodeGpus): void {
    this.gpus = inventory;
    this.nodes = nodes;
    this.allGpus = allGpus(inventory, nodes);
    this.gpusError = null;
  }

  private _keepCalls(calls: IAgentCall[], complete: boolean): void {
    const known = complete ? [] : this.agentCalls;
    const others = known.filter(
      ({ id }) => !calls.some(call => call.id === id)
    );
    this.agentCalls = [...calls, ...others]
      .sort((a, b) => b.id - a.id)
      .slice(0, MOST_CALLS);
  }

  private async _onConnection(): Promise<void> {
    this.changed.emit();
    if (this.connection.state === 'live') {
      try {
        this._keepGpus(await this._client.gpus(), this.nodes);
      } catch (error) {
        this.gpusError = asApiError(error);
      }
      this.changed.emit();
    }
  }

  private readonly _client: Client;
  private readonly _stream: Stream;
  private readonly _kernels: INotebookKernels;
  private readonly _errors = new Map<string, IApiError>();
  /** Ids of pools, and of kernels that are to get one. */
  private readonly _pending = new Set<string>();
  /** By pool: when its cell was interrupted, in Unix seconds, and the requests that ran it. */
  private readonly _interrupts = new Map<
    string,
    { since: number; requests: (string | null)[] }
  >();
  private _preferredRanks = 0;
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
