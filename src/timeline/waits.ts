import { waitOf } from '../model/waiting';
import type { IPoolsModel } from '../model/tokens';

/** Seconds: what is shorter is a step of a program. */
const SHORTEST = 2;
/** Seconds for which waits are kept: the longest range of the timeline. */
const KEEP = 3600;

/** A time, in Unix seconds, in which a rank waited in one collective; null while it lasts. */
interface IWaitSpan {
  readonly start: number;
  readonly end: number | null;
}

interface IGpuWait extends IWaitSpan {
  readonly gpu: string;
}

/** When ranks waited in collectives, as far as the page was told of it. */
export class Waits {
  /** Take in where ranks are now. */
  add({ pools, telemetry }: IPoolsModel, now: number): void {
    const waiting = new Map<string, IGpuWait>();
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
    for (const [key, span] of this._waiting) {
      if (!waiting.has(key) && now - span.start >= SHORTEST) {
        this._over.push({ ...span, end: now });
      }
    }
    // One that has gone on while nobody looked is not over.
    const goesOn = ({ gpu, start }: IGpuWait) =>
      [...waiting.values()].some(
        wait => wait.gpu === gpu && wait.start === start
      );
    this._over = this._over.filter(
      span => (span.end ?? now) > now - KEEP && !goesOn(span)
    );
    this._waiting = waiting;
    this._now = now;
  }

  /** Nobody looks from now on: what lasts now may be over when somebody does again. */
  stop(now: number): void {
    for (const span of this._waiting.values()) {
      if (now - span.start >= SHORTEST) {
        this._over.push({ ...span, end: now });
      }
    }
    this._waiting = new Map();
    this._now = now;
  }

  /** Those of the ranks on a GPU. */
  on(gpu: string): readonly IWaitSpan[] {
    const lasting = [...this._waiting.values()].filter(
      ({ start }) => this._now - start >= SHORTEST
    );
    return [...this._over, ...lasting].filter(span => span.gpu === gpu);
  }

  private _over: IGpuWait[] = [];
  private _waiting = new Map<string, IGpuWait>();
  private _now = 0;
}
