/** What the server says of pools, exactly as it comes over the wire. */

import type { ICellsMessage } from './cellContract';
import type { TelemetryMessage } from './gpuContract';
import type { IJobsMessage } from './queueContract';

export type PoolState =
  | 'PENDING'
  | 'CONFIGURING'
  | 'RUNNING'
  | 'SUSPENDED'
  | 'COMPLETING'
  | 'CANCELLED'
  | 'FAILED'
  | 'COMPLETED';

export type RankState = 'starting' | 'idle' | 'busy' | 'dead';

export interface IGpuRef {
  index: number;
  /** `3`, or `3:1` for instance 1 of GPU 3. */
  label: string;
  uuid: string;
  name: string;
}

export interface IRank {
  rank: number;
  /** `cpu` or `cuda:0`. */
  device: string;
  gpu: IGpuRef | null;
  /** Null until the rank is forked. */
  pid: number | null;
  state: RankState;
  /** Unix seconds: in this state since. */
  since: number;
  /** The notebook's number of the cell that it runs, or ran last; null if that had none. */
  cell: number | null;
  /** The notebook's id of that cell; null if the front end gave none. */
  cell_id: string | null;
  /** The id of the request that runs that cell. */
  msg_id: string | null;
  /** Why the rank is dead, in words. */
  exit: string | null;
  /** The last lines that it wrote, if it died unasked. */
  stderr: string[];
  /** Which machine it is on, if the pool has several. */
  node?: string;
}

export interface IReason {
  code: string;
  message: string;
  hint: string;
  rank: number | null;
  /** The last lines of stderr. */
  stderr: string[];
}

/** A process that keeps a pool alive. */
export interface IAttachment {
  as: 'server' | 'kernel';
  pid: number;
  kernel_id: string | null;
  /** The notebook's path, empty when it is not known. */
  name: string;
  /** Whether all cells of the notebook run on the ranks. */
  mode: boolean;
}

export interface IProgress {
  phase: string;
  ready: number;
  /** While it waits for GPUs: who has them. */
  reason?: string;
  /** And its place in line. */
  line?: IInLine | null;
}

export interface IPool {
  id: string;
  kernel_id: string | null;
  /** The notebook's path, empty when there is none. */
  name: string;
  host: string;
  /** What started ranks on other nodes; `local` if there are none. */
  engine?: string;
  /** The id of the engine's job, as Slurm's; empty if there is none. */
  engine_job?: string;
  /** Nodes that cannot be used; their ranks are dead. */
  lost_nodes?: string[];
  state: PoolState;
  /** Grows by one at each change. */
  version: number;
  /** Why it failed, or was stopped as nobody came for it. */
  reason: IReason | null;
  world_size: number;
  /** How many ranks were asked for, if fewer were enough to start with. */
  wanted_ranks?: number | null;
  /** How far it is, if it is to have another size. */
  resizing?: IResizing | null;
  /** How its GPUs are leased; null if it has none. */
  leases?: 'exclusive' | 'shared' | null;
  /** Seconds of idle time after which it is parked for those who wait; without it, it cannot be parked. */
  park_after?: number | null;
  /** How far it is, if it is being parked or resumed. */
  parking?: IParking | null;
  parked?: IParked | null;
  backend: string;
  placement: string;
  /** Plain sentences to show. */
  notices: string[];
  progress: IProgress;
  created: number;
  started: number | null;
  ended: number | null;
  /** Unix seconds: its kernel is gone since; after a grace time it is stopped. */
  orphaned: number | null;
  /** Unix seconds: no cell runs since, and its GPUs do nothing. */
  idle_since: number | null;
  /** Its server, its kernel, and kernels that have attached to it. */
  attachments: IAttachment[];
  generation: number;
  ranks: IRank[];
}

/** A pool that is to have another number of ranks. */
export interface IResizing {
  num_ranks: number;
  /** What it waits for. */
  reason: string;
  line: IInLine | null;
  /** Why it kept its size. */
  failure: IReason | null;
}

/** A pool that is being parked, or resumed. */
export interface IParking {
  resume: boolean;
  /** What it waits for, or does. */
  reason: string;
  line: IInLine | null;
  /** Why it stayed as it was. */
  failure: IReason | null;
}

/** A pool whose ranks hold nothing on their GPUs. */
export interface IParked {
  /** Unix seconds. */
  since: number;
  /** How much of this machine's memory holds what was there. */
  nbytes: number;
  /** Whether the GPUs are still, or again, the pool's. */
  leased: boolean;
}

/** Which ranks are replaced; all, if it says nothing. */
export interface IRestartChoice {
  ranks?: number[];
  /** All but those on lost nodes, without which the pool goes on. */
  without_lost_nodes?: boolean;
}

export interface IServerStatus {
  version: string;
  host: string;
  pools: number;
}

export interface IApiError {
  code: string;
  message: string;
  hint: string;
  field?: string;
  /** Of a start that was refused: requests that would not be. */
  offers?: IOffer[];
  /** What that start had asked for. */
  choice?: IStartChoice;
}

/** The place of a pool among all that wait on the machine. */
export interface IInLine {
  /** From 1. */
  place: number;
  /** Unix seconds; null if nobody knows. */
  expected: number | null;
  /** Whether it starts then at the latest. */
  certain: boolean;
}

/** What a start on GPUs that are taken could be instead. */
export interface IOffer {
  kind: 'wait' | 'free' | 'share' | 'job';
  /** Where one who waits would stand. */
  line?: IInLine;
  /** The GPUs that are free, no more than are needed. */
  gpu_ids?: (number | string)[];
  /** How many GPUs the job needs. */
  gpus?: number;
}

/** What a user may choose of a new pool; what is left out, the server chooses. */
export interface IStartChoice {
  num_ranks?: number;
  /** How many of them run on the CPU, although there are GPUs. */
  cpu_ranks?: number;
  /** Physical indices, `3:1` for MIG instance 1 of GPU 3, or UUIDs. */
  gpu_ids?: (number | string)[];
  placement?: string;
  backend?: string;
  one_rank_per_gpu?: boolean;
  oversubscribe?: boolean;
  env?: Record<string, string>;
  [field: string]: unknown;
}

export interface IStartRequest extends IStartChoice {
  kernel_id?: string;
}

/** How a field of the start form is drawn. */
export type StartWidget =
  'ranks' | 'gpus' | 'choice' | 'flag' | 'env' | 'bytes' | 'number';

/** One field of a start request, in words of JSON Schema. */
export interface IStartField {
  type: string;
  title: string;
  description: string;
  default?: unknown;
  /** What can be chosen, and what to call each. */
  oneOf?: { const: string; title: string }[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  'x-widget': StartWidget;
  /** Whether it stands below "More options". */
  'x-advanced'?: boolean;
  /** Of a number: `s`. */
  'x-unit'?: string;
  /** What is shown below it, a line each. */
  'x-notes'?: string[];
}

/** What a pool can be asked for on this machine; the fields in the order of the form. */
export interface IStartSchema {
  type: 'object';
  properties: Record<string, IStartField>;
}

/** Where every thread of a rank is, the main thread first. */
export interface IStack {
  rank: number;
  text: string;
}

/** The last lines that a rank wrote to stderr. */
export interface ILog {
  rank: number;
  lines: string[];
}

/** One call of a tool by a coding agent. */
export interface IAgentCall {
  id: number;
  /** What it calls itself. */
  agent: string;
  tool: string;
  pool: string | null;
  /** The code that it runs; of other tools, the arguments. */
  what: string;
  /** Unix seconds. */
  begun: number;
  /** Null until it is answered. */
  ended: number | null;
  failed: boolean;
}

export type StreamMessage =
  | {
      type: 'pools';
      pools: IPool[];
      /** What time it is for the server, in Unix seconds. */
      time: number;
    }
  | { type: 'pool'; pool: IPool }
  | { type: 'pool_removed'; id: string }
  | { type: 'time'; time: number }
  | { type: 'agents'; complete: boolean; agents: IAgentCall[] }
  | ICellsMessage
  | IJobsMessage
  | TelemetryMessage;

/** Whether its ranks are there, be they parked or not. */
export function hasRanks({ state }: IPool): boolean {
  return state === 'RUNNING' || state === 'SUSPENDED';
}

export function deadRanks({ ranks }: Pick<IPool, 'ranks'>): IRank[] {
  return ranks.filter(({ state }) => state === 'dead');
}

/** Whether any rank runs a cell. */
export function isBusy(pool: IPool | null): boolean {
  return pool?.ranks.some(({ state }) => state === 'busy') ?? false;
}

export function isKernelAttached(pool: IPool, kernelId: string): boolean {
  return pool.attachments.some(
    who => who.as === 'kernel' && who.kernel_id === kernelId
  );
}

/** Whether all cells of a kernel's notebook run on the pool's ranks. */
export function hasMode(
  pool: IPool | null,
  kernelId: string | undefined
): boolean {
  return Boolean(
    pool?.attachments.some(who => who.kernel_id === kernelId && who.mode)
  );
}

/** The pool that a kernel works with, be it its own or one that it has attached to; else its newest. */
export function poolOf(
  kernelId: string | null | undefined,
  pools: Iterable<IPool>
): IPool | null {
  if (!kernelId) {
    return null;
  }
  const byAge = [...pools].sort((a, b) => a.created - b.created);
  const used = byAge.filter(
    pool => !pool.ended && isKernelAttached(pool, kernelId)
  );
  const own = byAge.filter(pool => pool.kernel_id === kernelId);
  return used.at(-1) ?? own.at(-1) ?? null;
}
