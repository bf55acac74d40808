/** What the server says of GPUs, and of what ranks use, exactly as it comes over the wire. */

export interface IGpu {
  /** Of the physical GPU: the instances of one GPU share it. */
  index: number;
  uuid: string;
  name: string;
  /** Bytes; 0 where the driver does not say, as of a GPU without memory of its own. */
  memory_total: number;
  pci_bus_id: string;
  /** The place of a MIG instance on its GPU. */
  mig: number | null;
  /** The UUID of the GPU that a MIG instance is part of. */
  parent: string | null;
  /** Which other machine it is in; empty for the server's. */
  node?: string;
}

export interface IInventory {
  gpus: IGpu[];
  driver: string | null;
  /** Why there is no GPU, in a sentence. */
  reason: string | null;
  /** A sentence for each GPU that cannot be used. */
  problems: string[];
}

/** By node, the GPUs of other machines that ranks run on; `reason` is why nothing is heard of one. */
export type NodeGpus = Record<string, IInventory>;

export type NumberMetric =
  | 'utilization'
  | 'memory_utilization'
  | 'memory_used'
  | 'temperature'
  | 'power'
  | 'power_limit'
  | 'clock_sm'
  | 'clock_memory'
  | 'fan'
  | 'pstate'
  | 'ecc_corrected'
  | 'ecc_uncorrected'
  | 'encoder'
  | 'decoder'
  | 'pcie_tx'
  | 'pcie_rx'
  | 'nvlink_tx'
  | 'nvlink_rx'
  | 'sm_active'
  | 'tensor_active'
  | 'dram_active';

/** `throttle` is in words, divided by commas. */
export type Metric = NumberMetric | 'throttle';

/** Null where a value cannot be had now. */
export type Values = { [M in NumberMetric]?: number | null } & {
  throttle?: string | null;
};

/** Who a process is. */
export type Who =
  | { kind: 'rank'; pool: string; rank: number }
  | { kind: 'kernel'; kernel_id: string; name: string }
  /** Another process of the user, or of another user. */
  | { kind: 'mine' | 'other' | 'unknown' };

export interface IProcess {
  pid: number;
  user: string | null;
  command: string | null;
  /** Bytes. */
  memory: number | null;
  /** Percent. */
  sm: number | null;
  who: Who;
}

export interface ILease {
  /** Null for a lock that is none of ours; then nothing else is known of it. */
  user: string | null;
  pid?: number | null;
  /** Unix seconds. */
  since?: number | null;
  pool?: string | null;
  /** The notebook's path. */
  notebook?: string | null;
  shared: boolean;
  /** Those who share it. */
  others?: ILease[];
}

/** What a rank uses. */
export interface IUsage {
  rank: number;
  pid: number;
  /** Null if it did not answer in time: of what it does, nothing is known. */
  host_pid: number | null;
  /** Percent of one core. */
  cpu: number | null;
  /** Bytes. */
  memory: number | null;
  /** Bytes that torch has given out, and that it holds. */
  allocated: number | null;
  reserved: number | null;
  /** The collective that it waits in, such as `all_reduce`. */
  call: string | null;
  /** How many collectives it has begun, this one included. */
  calls: number | null;
  /** The line of the cell that it is at, while it waits. */
  line: number | null;
  /** Unix seconds: it was seen there first. */
  waiting_since: number | null;
  /** Where the debugger has stopped it; servers of older versions do not tell. */
  stopped?: { file: string; line: number } | null;
}

type ByGpu<T> = Record<string, T>;

export interface IGpusMessage {
  type: 'gpus';
  inventory: IInventory;
  nodes?: NodeGpus;
  /** Unix seconds: the newest sample, while there should be newer ones. */
  stale_since: number | null;
  /** Why, or what else is wrong. */
  trouble: string | null;
  /** Why a metric cannot be had, in a word. */
  errors: ByGpu<{ [M in Metric]?: string }>;
  leases: ByGpu<ILease>;
  closed?: ByGpu<IClosed>;
}

/** What the GPUs did. */
export interface IGpuHistory {
  /** Seconds between two times. */
  step: number;
  times: number[];
  gpus: ByGpu<{ [M in NumberMetric]?: (number | null)[] }>;
}

export interface IHistoryMessage extends IGpuHistory {
  type: 'history';
}

export interface ISampleMessage {
  type: 'sample';
  time: number;
  /** What has changed (all of it in the first message): a list per metric, in the inventory's order, and then of each node. */
  values: { [M in Metric]?: Values[M][] };
}

export interface IProcessesMessage {
  type: 'processes';
  gpus: ByGpu<IProcess[]>;
  /** Of GPUs that nobody leases. */
  in_use?: ByGpu<IGpuUse>;
}

/** A GPU that is drained, reserved, or only for some users. */
export interface IClosed {
  /** After "GPU 1 is": `drained by root: fan`. */
  words: string;
  /** Whether it cannot be had now. */
  now: boolean;
}

/** Why a GPU that nobody leases is not free. */
export interface IGpuUse {
  /** After "GPU 1 is": `used by python, pid 812, user bob, 3 GiB`. */
  words: string;
  /** Of the processes that count. */
  pids: number[];
  /** Whether more is used, by processes that cannot be seen. */
  unseen: boolean;
}

export interface IUsageMessage {
  type: 'usage';
  /** By pool; null for a rank of whose process nothing is known. */
  pools: Record<string, (IUsage | null)[]>;
  /** By pool, why its ranks wait; not there if none waits. */
  verdicts?: Record<string, IVerdict>;
}

/** Why the ranks of a pool do not go on. */
export interface IRemedy {
  label: string;
  magic: string;
  /** The ranks that it replaces. */
  restarts: number[];
}

export interface IVerdict {
  kind: string;
  /** In the words of the kernel's output. */
  sentence: string;
  /** What to do next. */
  hint: string;
  /** The ranks that the others wait for. */
  ranks: number[];
  /** Whether it will not end by itself. */
  stuck: boolean;
  remedies: IRemedy[];
  /** The collective. */
  op: string | null;
  /** Unix seconds: the wait began; null if that is not known. */
  since: number | null;
}

export type TelemetryMessage =
  | IGpusMessage
  | IHistoryMessage
  | ISampleMessage
  | IProcessesMessage
  | IUsageMessage;

/** What a client can look at. */
export type Topic = 'gpus' | 'pcie' | 'cells' | 'agents' | 'jobs';
