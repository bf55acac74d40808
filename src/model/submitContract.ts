/** What the server says of asking for jobs, exactly as it comes over the wire. */

/** A field of a `IJobRequest`, as JSON Schema. */
export interface ISubmitField {
  title: string;
  description: string;
  type: string;
  minimum?: number;
  /** What can be chosen, and how each of it is called. */
  enum?: string[];
  'x-labels'?: string[];
  /** How it is drawn. */
  'x-widget': string;
  /** Whether few will need it. */
  'x-advanced'?: boolean;
  /** What it is called in a command: `--gpus`. */
  'x-option'?: string;
}

export interface ISubmitSchema {
  /** In the order of the form. */
  properties: Record<string, ISubmitField>;
}

/** What a job is asked for with: its command or its notebook, and the options of `jdist submit`. */
export interface IJobRequest {
  command?: string[];
  /** Its path; relative ones start at the server's root. */
  notebook?: string;
  /** `lr=0.1`: set in the notebook. */
  parameter?: string[];
  /** `lr=0.1,0.01`: one job for each combination. */
  param?: string[];
  /** Where it runs. */
  chdir?: string;
  venv?: string;
  gpus?: number;
  [field: string]: unknown;
}

/** What would become of the first of the jobs that are asked for. */
export interface IJobPlan {
  count: number;
  /** The first three. */
  commands: string[];
  starts_now: boolean;
  /** UUIDs of the GPUs that it would get now. */
  gpus: string[];
  /** In line, from 1; null if it starts now, or may not start yet. */
  place: number | null;
  /** Unix seconds. */
  expected: number | null;
  /** Whether it starts then at the latest. */
  certain: boolean;
  /** Why it would wait, in Slurm's words. */
  reason: string;
  sentence: string;
}
