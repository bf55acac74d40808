import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type {
  IApiError,
  ILog,
  IPool,
  IRestartChoice,
  IStack,
  IStartChoice,
  IStartSchema
} from './contract';
import type { IGpu, IInventory, NodeGpus } from './gpuContract';
import type { IQueueModel } from './queue';
import type { ITelemetry } from './telemetry';
import type { IVariables } from './variablesContract';

/** The plugin whose settings are ours. */
export const SETTINGS_ID = 'jupyter-dist-server:plugin';

/** The id of the panel, and of its node in the page. */
export const PANEL_ID = 'jupyter-dist-panel';

/** Makes the magics known to a kernel. */
export const LOAD = '%load_ext jupyter_dist_server';

/** The most ranks a pool can be asked for in the panel. */
export const MAX_RANKS = 128;

export namespace CommandIDs {
  export const openPanel = 'jupyter-dist:open-panel';
  export const showQueue = 'jupyter-dist:show-queue';
  export const openTimeline = 'jupyter-dist:open-timeline';
  export const openTrace = 'jupyter-dist:open-trace';
  export const startPool = 'jupyter-dist:start-pool';
  export const attachPool = 'jupyter-dist:attach-pool';
  export const stopPool = 'jupyter-dist:stop-pool';
  export const interruptRanks = 'jupyter-dist:interrupt-ranks';
  export const restartRanks = 'jupyter-dist:restart-ranks';
  export const leaveLostNodes = 'jupyter-dist:leave-lost-nodes';
  export const toggleMode = 'jupyter-dist:toggle-mode';
  export const killRank = 'jupyter-dist:kill-rank';
  export const showStacks = 'jupyter-dist:show-stacks';
  export const showLog = 'jupyter-dist:show-log';
  export const runOnRank = 'jupyter-dist:run-on-rank';
  export const toggleDistributed = 'jupyter-dist:toggle-distributed';
  export const insertCode = 'jupyter-dist:insert-code';
  export const runFile = 'jupyter-dist:run-file';
  export const newNotebook = 'jupyter-dist:new-notebook';
  export const holdJobs = 'jupyter-dist:hold-jobs';
  export const releaseJobs = 'jupyter-dist:release-jobs';
  export const cancelJobs = 'jupyter-dist:cancel-jobs';
  export const requeueJobs = 'jupyter-dist:requeue-jobs';
  export const moveJob = 'jupyter-dist:move-job';
  export const submitJob = 'jupyter-dist:submit-job';
  export const openJob = 'jupyter-dist:open-job';
  export const openJobNotebook = 'jupyter-dist:open-job-notebook';
  export const runNotebookAsJob = 'jupyter-dist:run-notebook-as-job';
  export const runFileAsJob = 'jupyter-dist:run-file-as-job';
}

/** How we stand with the server extension. */
export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  /** The server runs without our extension. */
  | { state: 'missing' }
  /** The server does not let us in. */
  | { state: 'refused'; error: IApiError }
  /** Lost since this moment (milliseconds), and trying again. */
  | { state: 'stale'; since: number };

/** The notebook the user looks at. */
export interface INotebook {
  path: string;
  /** Null while it has no kernel. */
  kernelId: string | null;
  /** Stays when the notebook gets another name; null while it has no kernel. */
  sessionId: string | null;
  /** Ranks are Python processes, so other kernels have none. */
  isPython: boolean;
}

/**
 * Every pool of the server.
 */
export interface IPoolsModel {
  /** Emitted after any change below. */
  readonly changed: ISignal<IPoolsModel, void>;
  readonly connection: Connection;
  /** Whether the server has ever told which pools there are. */
  readonly isKnown: boolean;
  /** Another object after each change. */
  readonly pools: ReadonlyMap<string, IPool>;
  /** What GPUs there are. */
  readonly gpus: IInventory | null;
  /** Those of other machines that ranks run on, while somebody watches. */
  readonly nodes: NodeGpus;
  /** All of both. */
  readonly allGpus: readonly IGpu[];
  /** Why the GPUs could not be listed. */
  readonly gpusError: IApiError | null;
  /** How busy they are, and the ranks. */
  readonly telemetry: ITelemetry;
  /** What runs and waits on the machine. */
  readonly queue: IQueueModel;
  /**
   * How many ranks to offer for a new pool; null where only the server knows how many GPUs are free, or
   * who has them all.
   */
  readonly defaultRanks: number | null;
  /** Seconds after which ranks wait too long for another one. */
  readonly waitLimit: number;

  /** Ask the server again when it was missing, refused or lost. */
  reconnect(): void;
  /** What went wrong with the last request from a kernel's notebook. */
  errorOf(kernelId: string): IApiError | null;
  forgetError(kernelId: string): void;
  /** Whether a request for a pool, or for a kernel that is to get one, waits for its answer. */
  hasRequest(id: string): boolean;
  /** Since when the cell of a pool is being interrupted, in Unix seconds; null if it is not. */
  interruptedAt(poolId: string): number | null;
  /** Set by the user; 0 means one per free GPU, or 2 without a GPU. */
  setPreferredRanks(ranks: number): void;
  setWaitLimit(seconds: number): void;
  /** Start a pool for a kernel's notebook; unless it is named, the current one's. */
  start(choice: IStartChoice, kernelId?: string): Promise<void>;
  /** Have all cells of a notebook run on its ranks, or only those that say so. */
  setMode(kernelId: string, isOn: boolean): Promise<void>;
  /** Stop a pool, or cancel its start. */
  stop(poolId: string): Promise<void>;
  /** Without `ranks`, all of them. */
  interrupt(poolId: string, ranks?: number[]): Promise<void>;
  restart(poolId: string, which?: IRestartChoice): Promise<void>;
  /** End ranks at once; the pool goes on without them. */
  kill(poolId: string, ranks: number[]): Promise<void>;
  /** Where every thread of a rank is; rejects with an `IApiError`. */
  stack(poolId: string, rank: number): Promise<IStack>;
  /** The last lines that a rank wrote to stderr; rejects with an `IApiError`. */
  log(poolId: string, rank: number): Promise<ILog>;
  /** What the variables of a pool's ranks are; rejects with an `IApiError`. */
  variables(poolId: string): Promise<IVariables>;
  /** The same, and all of them are compared; rejects with an `IApiError`. */
  checkVariables(poolId: string): Promise<IVariables>;
  /** What a pool can be asked for; rejects with an `IApiError`. */
  startSchema(): Promise<IStartSchema>;
}

export const IPoolsModel = new Token<IPoolsModel>(
  'jupyter-dist-server:IPoolsModel',
  'The pools of ranks on the server.'
);

/**
 * The notebook the user looks at, and its pool.
 */
export interface ICurrentNotebook {
  /** Emitted after any change below. */
  readonly changed: ISignal<ICurrentNotebook, void>;
  /** Another object after each change. */
  readonly notebook: INotebook | null;
  /** The newest pool of its kernel. */
  readonly pool: IPool | null;
  /** What went wrong with its last request. */
  readonly error: IApiError | null;
  /** Whether a request for it, or for its pool, waits for its answer. */
  readonly isPending: boolean;
  dismissError(): void;
}

export const ICurrentNotebook = new Token<ICurrentNotebook>(
  'jupyter-dist-server:ICurrentNotebook',
  'The notebook the user looks at, and its pool.'
);
