import type { IPoolsModel } from '../model/tokens';
import { waitOf } from '../model/waiting';

/** Seconds; shorter waits are normal. */
const SHORTEST = 2;
/** For how many seconds waits are kept: the longest range of the timeline. */
const KEEP = 3600;

/** The time, in Unix seconds, in which a rank waited in a collective; null while it does. */
interface IWait {
  readonly gpu: string;
  readonly start: number;
  readonly end: number | null;
}

/** When ranks waited in collectives, while the timeline was visible. */
export class Waits {
  /** Read the current state of all ranks. */
  add({ pools, telemetry }: IPoolsModel, now: number): void {
    const waiting = new Map<string, IWait>();
    for (const pool of pools.values()) {
      for (const rank of pool.ranks) {
        const { usage } = telemetry.rank(pool.id, rank.rank);
        const wait = waitOf(rank, usage);
        if (wait && rank.gpu) {
          const span = { gpu: rank.gpu.uuid, start: wait.since, end: null };
          waiting.set(`${pool.id} ${rank.rank} ${wait.since}`, span);
        }
      }
    }
    this._replace(waiting, now);
  }

  /** The timeline is hidden: it is not known how long ranks go on waiting. */
  stop(now: number): void {
    this._replace(new Map(), now);
  }

  /** Those of the ranks on a GPU. */
  on(gpu: string): readonly IWait[] {
    const lasting = [...this._waiting.values()].filter(
      ({ start }) => this._now - start >= SHORTEST
    );
    return [...this._over, ...lasting].filter(span => span.gpu === gpu);
  }

  private _replace(waiting: Map<string, IWait>, now: number): void {
    for (const [key, span] of this._waiting) {
      if (!waiting.has(key) && now - span.start >= SHORTEST) {
        this._over.push({ ...span, end: now });
      }
    }
    // A wait that goes on after the timeline was hidden is not over.
    const goesOn = ({ gpu, start }: IWait) =>
      [...waiting.values()].some(
        wait => wait.gpu === gpu && wait.start === start
      );
    this._over = this._over.filter(
      span => (span.end ?? now) > now - KEEP && !goesOn(span)
    );
    this._waiting = waiting;
    this._now = now;
  }

  private _over: IWait[] = [];
  private _waiting = new Map<string, IWait>();
  private _now = 0;
}
