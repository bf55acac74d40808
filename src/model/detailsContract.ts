import type { IVerdict } from './gpuContract';
import type { IJob, JobState } from './queueContract';
import type { IJobRequest } from './submitContract';

/** What the server says of one job, exactly as it comes over the wire. */
export interface IJobDetails {
  job: IFullJob;
  /** With its parameters. */
  command: string[];
  /** The file of its output. */
  output: string;
  /** The file of its errors; null where these are in its output. */
  error: string | null;
  /** The notebook that it writes, as the file browser has it. */
  notebook: string | null;
  /** What asks for a job like it; null for jobs of older versions. */
  request: IJobRequest | null;
  attempts: IAttempt[];
  dependencies: IDependency[];
  /** The names of its environment variables. */
  variables: string[];
}

/** Why the ranks of a job wait. */
export interface IJobVerdict {
  launches: ILaunchVerdict[];
}

/** That of the ranks that were started together: by torchrun, or as a pool. */
export interface ILaunchVerdict {
  text: string;
  stacks: string;
  verdict: IVerdict | null;
  world_size: number;
  /** The pool's ID; empty for the ranks of a script. */
  pool: string;
}

export interface IFullJob extends IJob {
  priority: number;
  gpus: number;
  gpu_uuids: string[];
  gpu_ids: string[];
  cpus: number;
  /** Bytes. */
  memory: number;
  submitted: number;
  ends_by: number | null;
  spec: {
    argv: string[];
    cwd: string;
    notebook?: string;
    setup?: string[];
    torchrun?: boolean;
    comment?: string;
  };
}

/** One try to run it. */
export interface IAttempt {
  attempt: number;
  /** Null while it runs. */
  state: JobState | null;
  started: number | null;
  ended: number | null;
  exit_code: number | null;
  exit_signal: number | null;
  /** What was seen of its GPUs, by UUID. */
  usage: Record<string, IGpuUsage>;
}

export interface IGpuUsage {
  /** Readings. */
  samples: number;
  /** Of all readings, in percent. */
  load_sum: number;
  /** Null where it cannot be read. */
  load_peak: number | null;
  /** Bytes. */
  memory_peak: number;
  curve: GpuPoint[];
}

/** Unix seconds, the mean load from there on in percent, and the highest memory in bytes. */
export type GpuPoint = [at: number, load: number | null, memory: number];

export interface IDependency {
  label: string;
  name: string;
  state: JobState;
  /** As the option has it: `afterok:12`, `after:12+5`. */
  dependency: string;
  /** Whether one of them all is enough. */
  any: boolean;
}

/** Whole lines of what a job has printed. */
export interface IJobLines {
  /** In bytes, as all places are. */
  offset: number;
  next: number;
  size: number;
  /** Whether what was searched is in them. */
  found: boolean;
  text: string;
  state: JobState;
}

/** Which lines: those from a place on, those before one, or the first ones from there with a text. */
export interface ILinesQuery {
  offset?: number;
  before?: number;
  find?: string;
  /** Of the file of errors, not of that of the output. */
  error?: 1;
}
