import type {
  IClosed,
  IGpuUse,
  ILease,
  IProcess,
  IUsage,
  IVerdict,
  Metric,
  Values
} from './gpuContract';

/** All that is known of a GPU now; another object after each change. */
export interface IReading {
  readonly values: Readonly<Values>;
  /** Why a metric cannot be had, in a word. */
  readonly errors: { readonly [M in Metric]?: string };
  /** Null until they are known. */
  readonly processes: readonly IProcess[] | null;
  /** What uses it, if nobody leases it. */
  readonly use: IGpuUse | null;
  readonly lease: ILease | null;
  readonly closed: IClosed | null;
  /** Utilization over `SPAN`. */
  readonly curve: readonly (number | null)[];
}

/** What a rank uses now; another object after each change. */
export interface IRankReading {
  /** Null while it does not say. */
  readonly usage: IUsage | null;
  /** Whether the server knows that it does not go on by itself: its process is stopped, for example. */
  readonly isSilent: boolean;
  /** CPU use over `SPAN`, as far as it was followed. */
  readonly curve: readonly (number | null)[];
}

const NO_CURVE: readonly null[] = [];
/** Of a GPU of which nothing was told yet. */
export const UNREAD: IReading = {
  values: {},
  errors: {},
  processes: null,
  use: null,
  lease: null,
  closed: null,
  curve: NO_CURVE
};
/** Of a rank of which nothing was told yet. */
export const UNHEARD: IRankReading = {
  usage: null,
  isSilent: false,
  curve: NO_CURVE
};

/** The ranks that do not answer, and have to be restarted. */
export function silentIn(verdict: IVerdict | undefined): number[] {
  return verdict?.stuck
    ? verdict.remedies.flatMap(({ restarts }) => restarts)
    : [];
}
