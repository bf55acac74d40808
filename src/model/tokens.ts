import { Token } from '@lumino/coreutils';

import type { IApiError } from './contract';
import type { CurrentNotebook } from './notebook';
import type { PoolsModel } from './pools';

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
  export const resizePool = 'jupyter-dist:resize-pool';
  export const parkPool = 'jupyter-dist:park-pool';
  export const resumePool = 'jupyter-dist:resume-pool';
  export const leaveLostNodes = 'jupyter-dist:leave-lost-nodes';
  export const toggleMode = 'jupyter-dist:toggle-mode';
  export const killRank = 'jupyter-dist:kill-rank';
  export const debugRank = 'jupyter-dist:debug-rank';
  export const stepOneRank = 'jupyter-dist:step-one-rank';
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

export type IPoolsModel = Readonly<PoolsModel>;

export const IPoolsModel = new Token<IPoolsModel>(
  'jupyter-dist-server:IPoolsModel',
  'The pools of ranks on the server.'
);

export type ICurrentNotebook = Readonly<CurrentNotebook>;

export const ICurrentNotebook = new Token<ICurrentNotebook>(
  'jupyter-dist-server:ICurrentNotebook',
  'The notebook the user looks at, and its pool.'
);
