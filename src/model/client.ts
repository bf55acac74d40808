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
import type { IJobDetails, IJobLines, ILinesQuery } from './detailsContract';
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

/**
 * A request that did not succeed, in the server's own words where it had any.
 */
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

/**
 * The REST side of the server extension.
 */
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
   * What the GPUs did, from `since` on: in Unix seconds, or, if negative, in seconds before now by the
   * server's clock. A row of the answer sums up `step` seconds.
   */
  gpuHistory(since: number, step: number): Promise<IGpuHistory> {
    const query = URLExt.objectToQueryString({ since, step });
    return this._request('GET', `gpus/history${query}`);
  }

  start(body: IStartRequest): Promise<IPool> {
    return this._request('POST', 'pools', body);
  }

  stop(id: string): Promise<IPool> {
    return this._request('DELETE', `pools/${encodeURIComponent(id)}`);
  }

  /** Without `ranks`, all of them. */
  interrupt(id: string, ranks?: number[]): Promise<IPool> {
    return this._request(
      'POST',
      `pools/${encodeURIComponent(id)}/interrupt`,
      ranks ? { ranks } : {}
    );
  }

  kill(id: string, ranks: number[]): Promise<IPool> {
    return this._request('POST', `pools/${encodeURIComponent(id)}/kill`, {
      ranks
    });
  }

  stack(id: string, rank: number): Promise<IStack> {
    return this._request(
      'GET',
      `pools/${encodeURIComponent(id)}/ranks/${rank}/stack`
    );
  }

  log(id: string, rank: number): Promise<ILog> {
    return this._request(
      'GET',
      `pools/${encodeURIComponent(id)}/ranks/${rank}/log`
    );
  }

  /** What the ranks' variables are; small ones are compared. */
  variables(id: string): Promise<IVariables> {
    return this._request('GET', `pools/${encodeURIComponent(id)}/variables`);
  }

  /** The same, and all are compared. */
  checkVariables(id: string): Promise<IVariables> {
    return this._request('POST', `pools/${encodeURIComponent(id)}/check`, {});
  }

  startSchema(): Promise<IStartSchema> {
    return this._request('GET', 'start-schema');
  }

  /** Without `ranks`, all of them. */
  restart(id: string, which: IRestartChoice = {}): Promise<IPool> {
    return this._request(
      'POST',
      `pools/${encodeURIComponent(id)}/restart`,
      which
    );
  }

  /** All that runs and waits on the machine, and when what waits is expected to start. */
  queue(): Promise<IQueue> {
    return this._request('GET', 'queue?start=1');
  }

  /** The jobs of this user in these states that ended last, the newest end first. */
  jobs(states: readonly JobState[]): Promise<IJobs> {
    const path = `jobs?states=${states.join()}&order=ended`;
    return this._request('GET', path);
  }

  /** How far the tasks of an array of this user are; `jobs` has one of them. */
  tasks(array: string): Promise<ITasks> {
    return this._request('GET', `jobs/${encodeURIComponent(array)}?first=1`);
  }

  changeJob(action: JobAction, label: string): Promise<IJobs> {
    const path = `jobs/${encodeURIComponent(label)}`;
    return action === 'cancel'
      ? this._request('DELETE', path)
      : this._request('POST', `${path}/${action}`);
  }

  /** What jobs can be asked for with. */
  submitSchema(): Promise<ISubmitSchema> {
    return this._request('GET', 'submit-schema');
  }

  /** What would become of jobs; nothing is queued. */
  planJobs(request: IJobRequest): Promise<IJobPlan> {
    return this._request('POST', 'jobs/plan', request);
  }

  /** All about one job of this user. */
  jobDetails(label: string): Promise<IJobDetails> {
    return this._request('GET', `jobs/${encodeURIComponent(label)}/details`);
  }

  /** Whole lines of what it has printed. */
  jobLines(label: string, query: ILinesQuery): Promise<IJobLines> {
    const asked = URLExt.objectToQueryString({ ...query });
    const path = `jobs/${encodeURIComponent(label)}/lines${asked}`;
    return this._request('GET', path);
  }

  submitJobs(request: IJobRequest): Promise<IJobs> {
    return this._request('POST', 'jobs', request);
  }

  /** Own jobs start in the order of priority, then of age. */
  setPriority(label: string, priority: number): Promise<IJobs> {
    const path = `jobs/${encodeURIComponent(label)}`;
    return this._request('PATCH', path, { priority });
  }

  private async _request<T>(
    method: string,
    path: string,
    body?: object,
    signal?: AbortSignal
  ): Promise<T> {
    const url = URLExt.join(this.serverSettings.baseUrl, NAMESPACE, path);
    const init: RequestInit = { method };
    if (body) {
      init.body = JSON.stringify(body);
    }
    if (signal) {
      init.signal = signal;
    }
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
    let body: Partial<IApiError> = {};
    try {
      body = (await response.json()) as Partial<IApiError>;
    } catch {
      // A body that is no JSON has nothing to add to the status.
    }
    return new ApiError(
      {
        code: body.code ?? `http_${response.status}`,
        message:
          body.message ||
          trans.__('The server responded with status %1.', response.status),
        hint: body.hint ?? '',
        field: body.field,
        offers: body.offers
      },
      response.status
    );
  }
}
