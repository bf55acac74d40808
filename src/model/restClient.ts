import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  IApiError,
  ILog,
  IOffer,
  IPool,
  IRestartChoice,
  IServerStatus,
  IStack,
  IStartChoice,
  IStartRequest,
  IStartSchema
} from './contract';
import type {
  IJobDetails,
  IJobLines,
  IJobVerdict,
  ILinesQuery
} from './detailsContract';
import type { IGpuHistory, IInventory } from './gpuContract';
import type {
  IJobs,
  IQueue,
  ITasks,
  JobAction,
  JobState
} from './queueContract';
import type { IJobPlan, IJobRequest, ISubmitSchema } from './submitContract';
import { trans } from './trans';
import type { IVariables } from './variablesContract';

const NAMESPACE = 'jupyter-dist';

/** A request that failed, in the server's words if it sent any. */
export class ApiError extends Error implements IApiError {
  constructor(
    error: IApiError,
    /** The HTTP status, or 0 when the server could not be reached. */
    readonly status: number
  ) {
    super(error.message);
    this.code = error.code;
    this.hint = error.hint;
    this.field = error.field;
    this.offers = error.offers;
  }

  readonly code: string;
  readonly hint: string;
  readonly field?: string;
  readonly offers?: IOffer[];
  choice?: IStartChoice;
}

/** Any other error is a mistake of ours, and thrown again. */
export function asApiError(error: unknown): ApiError {
  if (!(error instanceof ApiError)) {
    throw error;
  }
  return error;
}

/** The REST API of the server extension. */
export class Client {
  constructor(readonly serverSettings: ServerConnection.ISettings) {}

  /** Where the server pushes pool changes. */
  get streamUrl(): string {
    const { wsUrl, token, appendToken } = this.serverSettings;
    const url = URLExt.join(wsUrl, NAMESPACE, 'stream');
    return appendToken && token
      ? `${url}?token=${encodeURIComponent(token)}`
      : url;
  }

  status(signal?: AbortSignal): Promise<IServerStatus> {
    return this._request('GET', 'status', undefined, signal);
  }

  gpus(): Promise<IInventory> {
    return this._request('GET', 'gpus');
  }

  /**
   * What the GPUs did since a time: Unix seconds, or, if negative, seconds before now by the server's
   * clock. Each row of the answer sums up `step` seconds.
   */
  gpuHistory(since: number, step: number): Promise<IGpuHistory> {
    const query = URLExt.objectToQueryString({ since, step });
    return this._request('GET', `gpus/history${query}`);
  }

  start(body: IStartRequest): Promise<IPool> {
    return this._request('POST', 'pools', body);
  }

  stop(id: string): Promise<IPool> {
    return this._request('DELETE', pathOf('pools', id));
  }

  /** Without `ranks`, all of them. */
  interrupt(id: string, ranks?: number[]): Promise<IPool> {
    return this._request('POST', pathOf('pools', id, 'interrupt'), { ranks });
  }

  kill(id: string, ranks: number[]): Promise<IPool> {
    return this._request('POST', pathOf('pools', id, 'kill'), { ranks });
  }

  stack(id: string, rank: number): Promise<IStack> {
    return this._request('GET', pathOf('pools', id, 'ranks', rank, 'stack'));
  }

  log(id: string, rank: number): Promise<ILog> {
    return this._request('GET', pathOf('pools', id, 'ranks', rank, 'log'));
  }

  /** What the ranks' variables are; small ones are compared. */
  variables(id: string): Promise<IVariables> {
    return this._request('GET', pathOf('pools', id, 'variables'));
  }

  /** The same, and all are compared. */
  checkVariables(id: string): Promise<IVariables> {
    return this._request('POST', pathOf('pools', id, 'check'), {});
  }

  startSchema(): Promise<IStartSchema> {
    return this._request('GET', 'start-schema');
  }

  /** Without `ranks`, all of them. */
  restart(id: string, which: IRestartChoice = {}): Promise<IPool> {
    return this._request('POST', pathOf('pools', id, 'restart'), which);
  }

  resize(id: string, num_ranks: number, wait: boolean): Promise<IPool> {
    const asked = { num_ranks, wait };
    return this._request('POST', pathOf('pools', id, 'resize'), asked);
  }

  /** Or end its wait to be resumed. */
  park(id: string): Promise<IPool> {
    return this._request('POST', pathOf('pools', id, 'park'), {});
  }

  resume(id: string): Promise<IPool> {
    return this._request('POST', pathOf('pools', id, 'resume'), {});
  }

  /** All that runs and waits on the machine, and when what waits is expected to start. */
  queue(): Promise<IQueue> {
    return this._request('GET', 'queue?start=1');
  }

  /** The jobs of this user in these states that ended last, the newest end first. */
  jobs(states: readonly JobState[]): Promise<IJobs> {
    return this._request('GET', `jobs?states=${states.join()}&order=ended`);
  }

  /** How far the tasks of an array of this user are; `jobs` has one of them. */
  tasks(array: string): Promise<ITasks> {
    return this._request('GET', `${pathOf('jobs', array)}?first=1`);
  }

  changeJob(action: JobAction, label: string): Promise<IJobs> {
    return action === 'cancel'
      ? this._request('DELETE', pathOf('jobs', label))
      : this._request('POST', pathOf('jobs', label, action));
  }

  submitSchema(): Promise<ISubmitSchema> {
    return this._request('GET', 'submit-schema');
  }

  /** What would become of jobs; nothing is queued. */
  planJobs(request: IJobRequest): Promise<IJobPlan> {
    return this._request('POST', 'jobs/plan', request);
  }

  jobDetails(label: string): Promise<IJobDetails> {
    return this._request('GET', pathOf('jobs', label, 'details'));
  }

  /** Why its ranks wait, by launch. */
  jobVerdict(label: string): Promise<IJobVerdict> {
    return this._request('GET', pathOf('jobs', label, 'verdict'));
  }

  jobLines(label: string, query: ILinesQuery): Promise<IJobLines> {
    const asked = URLExt.objectToQueryString({ ...query });
    return this._request('GET', pathOf('jobs', label, 'lines') + asked);
  }

  submitJobs(request: IJobRequest): Promise<IJobs> {
    return this._request('POST', 'jobs', request);
  }

  /** Own jobs start in the order of priority, then of age. */
  setPriority(label: string, priority: number): Promise<IJobs> {
    return this._request('PATCH', pathOf('jobs', label), { priority });
  }

  private async _request<T>(
    method: string,
    path: string,
    body?: object,
    signal?: AbortSignal
  ): Promise<T> {
    const url = URLExt.join(this.serverSettings.baseUrl, NAMESPACE, path);
    const init = { method, signal, body: body && JSON.stringify(body) };
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(
        url,
        init,
        this.serverSettings
      );
    } catch {
      throw new ApiError(
        {
          code: 'unreachable',
          message: trans.__('The Jupyter server does not respond.'),
          hint: trans.__('Check that it is still running.')
        },
        0
      );
    }
    if (!response.ok) {
      throw await this._errorOf(response);
    }
    try {
      return (await response.json()) as T;
    } catch {
      // A proxy's page, or an answer that was cut off.
      throw new ApiError(
        {
          code: 'unreadable',
          message: trans.__('The Jupyter server sent an invalid reply.'),
          hint: trans.__('Check for a proxy between browser and server.')
        },
        response.status
      );
    }
  }

  /** Proxies and Jupyter itself answer with bodies that are not ours. */
  private async _errorOf(response: Response): Promise<ApiError> {
    const { status } = response;
    // A body that is not a JSON object has nothing to add to the status.
    const json: unknown = await response.json().catch(() => null);
    const body: Partial<IApiError> =
      typeof json === 'object' ? { ...json } : {};
    const message =
      body.message || trans.__('The server responded with status %1.', status);
    return new ApiError(
      { code: `http_${status}`, hint: '', ...body, message },
      status
    );
  }
}

function pathOf(...parts: (string | number)[]): string {
  return parts.map(encodeURIComponent).join('/');
}
