import { JSONExt } from '@lumino/coreutils';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { allGpus } from './cards';
import { CellHistory } from './cells';
import type { ICellHistory } from './cells';
import type { StreamMessage } from './contract';
import type {
  IGpusMessage,
  IHistoryMessage,
  ISampleMessage,
  IUsageMessage,
  IVerdict,
  Metric,
  Topic,
  Values
} from './gpuContract';
import { silentIn, UNHEARD, UNREAD } from './reading';
import type { IRankReading, IReading } from './reading';
import { Series } from './series';
import { serverTime } from './serverTime';
import { SPAN } from './span';

const COLUMNS = 120;

/** Where the readings come from: the stream. */
export interface ISource {
  readonly received: ISignal<unknown, StreamMessage>;
  watch(topics: readonly Topic[]): void;
}

/**
 * How busy the GPUs and the ranks are, for as long as somebody watches.
 */
export interface ITelemetry {
  readonly changed: ISignal<ITelemetry, void>;
  readonly trouble: ITrouble | null;
  /** Whether it is known who has which GPU now; without anybody watching it is not. */
  readonly isCurrent: boolean;
  /** Unix seconds, by the server's clock: the newest sample. */
  readonly time: number | null;
  gpu(uuid: string): IReading;
  rank(poolId: string, rank: number): IRankReading;
  /** Why the ranks of a pool wait; null if none does. */
  verdict(poolId: string): IVerdict | null;
  /** Which cells ran when. */
  readonly cells: ICellHistory;
  /** Ask the server to send readings, until the answer is disposed of. */
  watch(topic: Topic): IDisposable;
}

/** What is wrong, in a sentence. */
export interface ITrouble {
  readonly message: string;
  /** Unix seconds: the readings are as old as that; null if they are new. */
  readonly since: number | null;
}

/**
 * Follows the stream's messages on GPUs and usage.
 */
export class Telemetry implements ITelemetry {
  constructor(private readonly _stream: ISource) {
    _stream.received.connect(this._onMessage, this);
    document.addEventListener('visibilitychange', () => this._ask());
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get trouble(): ITrouble | null {
    return this._trouble;
  }

  get isCurrent(): boolean {
    return this._isTold;
  }

  get time(): number | null {
    return this._time;
  }

  readonly cells = new CellHistory();

  gpu(uuid: string): IReading {
    return this._gpus.get(uuid) ?? UNREAD;
  }

  rank(poolId: string, rank: number): IRankReading {
    return this._ranks.get(rankKey(poolId, rank)) ?? UNHEARD;
  }

  verdict(poolId: string): IVerdict | null {
    return this._verdicts[poolId] ?? null;
  }

  watch(topic: Topic): IDisposable {
    this._topics.push(topic);
    this._ask();
    return new DisposableDelegate(() => {
      this._topics.splice(this._topics.indexOf(topic), 1);
      this._ask();
    });
  }

  /** A page that nobody sees asks only what jobs do; details of GPUs are of no use without the rest. */
  private _ask(): void {
    const isAsking = !document.hidden && this._topics.includes('gpus');
    if (isAsking !== this._isAsking) {
      this._isAsking = isAsking;
      this._age();
    }
    const topics = this._topics.filter(topic => isAsking || topic === 'jobs');
    this._stream.watch([...new Set(topics)].sort());
  }

  /**
   * What was told before nobody looked, or before the connection was lost, is not so any more: ranks
   * may have left the collective that they waited in, and GPUs may have been taken.
   */
  private _age(): void {
    this._isTold = false;
    this._verdicts = {};
    for (const [key, reading] of this._ranks) {
      this._ranks.set(key, { ...reading, usage: null, isSilent: false });
    }
    this._changed.emit();
  }

  private _onMessage(_: unknown, message: StreamMessage): void {
    switch (message.type) {
      case 'pools':
        // The first message of a connection.
        this._age();
        return;
      case 'gpus':
        this._onGpus(message);
        break;
      case 'history':
        this._onHistory(message);
        break;
      case 'sample':
        this._onSample(message);
        break;
      case 'processes':
        // It may have been on its way when the last watcher went.
        this._isTold = this._isAsking;
        for (const uuid of this._order) {
          this._update(uuid, { processes: message.gpus[uuid] ?? [] });
        }
        break;
      case 'usage':
        this._onUsage(message);
        break;
      case 'cells':
        this.cells.take(message);
        return;
      default:
        return;
    }
    this._changed.emit();
  }

  private _onGpus(message: IGpusMessage): void {
    const { inventory, errors, leases, stale_since, trouble } = message;
    this._order = allGpus(inventory, message.nodes).map(({ uuid }) => uuid);
    for (const uuid of this._gpus.keys()) {
      if (!this._order.includes(uuid)) {
        this._gpus.delete(uuid);
        this._curves.delete(uuid);
      }
    }
    this._trouble =
      trouble === null ? null : { message: trouble, since: stale_since };
    for (const uuid of this._order) {
      if (stale_since !== null) {
        this._curve(uuid).push(stale_since, null);
      }
      this._update(uuid, {
        errors: errors[uuid] ?? {},
        lease: leases[uuid] ?? null
      });
    }
  }

  private _onHistory({ times, gpus }: IHistoryMessage): void {
    const pauses = pausesIn(times);
    for (const uuid of this._order) {
      const values = gpus[uuid]?.utilization ?? [];
      this._curves.delete(uuid);
      const curve = this._curve(uuid);
      times.forEach((time, index) => {
        curve.push(time, values[index] ?? null);
        if (pauses.has(index)) {
          curve.push(time, null);
        }
      });
      this._update(uuid, { curve: curve.columns });
    }
  }

  private _onSample({ time, values: changed }: ISampleMessage): void {
    this._time = time;
    const metrics = Object.keys(changed) as Metric[];
    this._order.forEach((uuid, index) => {
      const reading = this.gpu(uuid);
      const news = metrics
        .map(metric => [metric, changed[metric]?.[index] ?? null] as const)
        .filter(([metric, value]) => value !== reading.values[metric]);
      const values: Values = news.length
        ? { ...reading.values, ...Object.fromEntries(news) }
        : reading.values;
      const curve = this._curve(uuid);
      curve.push(time, values.utilization ?? null);
      this._update(uuid, { values, curve: curve.columns });
    });
  }

  private _onUsage({ pools, verdicts = {} }: IUsageMessage): void {
    this._verdicts = verdicts;
    const now = serverTime();
    const before = this._ranks;
    this._ranks = new Map();
    for (const [pool, usages] of Object.entries(pools)) {
      const silent = silentIn(verdicts[pool]);
      usages.forEach((usage, rank) => {
        const key = rankKey(pool, rank);
        const isSilent = silent.includes(rank);
        const curve = this._curve(key);
        curve.push(now, usage?.cpu ?? null);
        const known = before.get(key);
        const isNew =
          known?.curve !== curve.columns ||
          known.isSilent !== isSilent ||
          !JSONExt.deepEqual({ ...known.usage }, { ...usage });
        this._ranks.set(
          key,
          known && !isNew ? known : { usage, isSilent, curve: curve.columns }
        );
      });
    }
    for (const key of before.keys()) {
      if (!this._ranks.has(key)) {
        this._curves.delete(key);
      }
    }
  }

  private _curve(key: string): Series {
    let curve = this._curves.get(key);
    if (!curve) {
      curve = new Series(SPAN, COLUMNS);
      this._curves.set(key, curve);
    }
    return curve;
  }

  /** Whoever holds the last reading can see by its identity that nothing has changed. */
  private _update(uuid: string, changes: Partial<IReading>): void {
    const reading = this.gpu(uuid);
    const keys = Object.keys(changes) as (keyof IReading)[];
    if (keys.some(key => changes[key] !== reading[key])) {
      this._gpus.set(uuid, { ...reading, ...changes });
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _topics: Topic[] = [];
  private readonly _gpus = new Map<string, IReading>();
  private readonly _curves = new Map<string, Series>();
  private _ranks = new Map<string, IRankReading>();
  private _verdicts: Record<string, IVerdict> = {};
  private _order: string[] = [];
  private _trouble: ITrouble | null = null;
  private _time: number | null = null;
  private _isAsking = false;
  /** Whether leases and then processes were told since somebody looks. */
  private _isTold = false;
}

function rankKey(poolId: string, rank: number): string {
  return `${poolId} ${rank}`;
}

/** After which times nobody sampled for a while: the next one comes much later than usual. */
function pausesIn(times: readonly number[]): Set<number> {
  const waits = times.slice(1).map((time, index) => time - times[index]);
  const usual = [...waits].sort((a, b) => a - b)[waits.length >> 1];
  return new Set([...waits.keys()].filter(index => waits[index] > 3 * usual));
}
