import { JSONExt } from '@lumino/coreutils';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { allGpus } from './cards';
import { CellHistory } from './cells';
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

export type ITelemetry = Readonly<Telemetry>;

/** What is wrong, in a sentence. */
export interface ITrouble {
  readonly message: string;
  /** Unix seconds: the readings are as old as that; null if they are new. */
  readonly since: number | null;
}

/** How busy the GPUs and the ranks are, while somebody watches. */
export class Telemetry {
  constructor(private readonly _stream: ISource) {
    _stream.received.connect(this._onMessage, this);
    document.addEventListener('visibilitychange', () => this._ask());
  }

  readonly changed = new Signal<unknown, void>(this);
  trouble: ITrouble | null = null;
  /** Whether it is known who has which GPU now. */
  isCurrent = false;
  /** The time of the newest sample, in Unix seconds by the server's clock. */
  time: number | null = null;
  readonly cells = new CellHistory();

  gpu(uuid: string): IReading {
    return this._gpus.get(uuid) ?? UNREAD;
  }

  rank(poolId: string, rank: number): IRankReading {
    return this._ranks.get(rankKey(poolId, rank)) ?? UNHEARD;
  }

  /** Why the ranks of a pool wait; null if none does. */
  verdict(poolId: string): IVerdict | null {
    return this._verdicts[poolId] ?? null;
  }

  /** Have the server send readings until the result is disposed of. */
  watch(...topics: Topic[]): IDisposable {
    this._topics.push(...topics);
    this._ask();
    return new DisposableDelegate(() => {
      for (const topic of topics) {
        this._topics.splice(this._topics.indexOf(topic), 1);
      }
      this._ask();
    });
  }

  /** A hidden page follows only jobs. Details of GPUs are of no use without the rest. */
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
   * Forget what may have changed while nobody watched or the connection was lost: who waits where, and
   * who has which GPU.
   */
  private _age(): void {
    this.isCurrent = false;
    this._verdicts = {};
    for (const [key, reading] of this._ranks) {
      this._ranks.set(key, { ...reading, usage: null, isSilent: false });
    }
    this.changed.emit();
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
        this.isCurrent = this._isAsking;
        for (const uuid of this._order) {
          this._update(uuid, {
            processes: message.gpus[uuid] ?? [],
            use: message.in_use?.[uuid] ?? null
          });
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
    this.changed.emit();
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
    this.trouble =
      trouble === null ? null : { message: trouble, since: stale_since };
    for (const uuid of this._order) {
      if (stale_since !== null) {
        this._curve(uuid).push(stale_since, null);
      }
      this._update(uuid, {
        errors: errors[uuid] ?? {},
        lease: leases[uuid] ?? null,
        closed: message.closed?.[uuid] ?? null
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
    this.time = time;
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
    const curve = this._curves.get(key) ?? new Series(SPAN, COLUMNS);
    this._curves.set(key, curve);
    return curve;
  }

  /** A reading that did not change stays the same object. */
  private _update(uuid: string, changes: Partial<IReading>): void {
    const reading = this.gpu(uuid);
    const keys = Object.keys(changes) as (keyof IReading)[];
    if (keys.some(key => changes[key] !== reading[key])) {
      this._gpus.set(uuid, { ...reading, ...changes });
    }
  }

  private readonly _topics: Topic[] = [];
  private readonly _gpus = new Map<string, IReading>();
  private readonly _curves = new Map<string, Series>();
  private _ranks = new Map<string, IRankReading>();
  private _verdicts: Record<string, IVerdict> = {};
  private _order: string[] = [];
  private _isAsking = false;
}

function rankKey(poolId: string, rank: number): string {
  return `${poolId} ${rank}`;
}

/** The places of times after which nobody sampled for a while. */
function pausesIn(times: readonly number[]): Set<number> {
  const waits = times.slice(1).map((time, index) => time - times[index]);
  const usual = [...waits].sort((a, b) => a - b)[waits.length >> 1];
  return new Set([...waits.keys()].filter(index => waits[index] > 3 * usual));
}
