import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IHistory } from './recording';

/** Where a timeline gets the past from. */
export interface IPast {
  /**
   * What the server has kept, from `since` on.
   *
   * `since` is in Unix seconds, or, if negative, in seconds before now by the server's clock; a row
   * of the answer sums up `step` seconds. Throws an error with a sentence for the user.
   */
  load(since: number, step: number): Promise<IHistory>;
}

/**
 * The past, asked of the server.
 */
export class Past implements IPast {
  constructor(
    private readonly _settings: ServerConnection.ISettings,
    private readonly _trans: TranslationBundle
  ) {}

  async load(since: number, step: number): Promise<IHistory> {
    const query = URLExt.objectToQueryString({ since, step });
    return (await this._get(`gpus/history${query}`)) as IHistory;
  }

  private async _get(route: string): Promise<unknown> {
    const url = URLExt.join(this._settings.baseUrl, 'jupyter-dist', route);
    let answer: Response;
    try {
      answer = await ServerConnection.makeRequest(url, {}, this._settings);
    } catch {
      throw new Error(this._trans.__('The Jupyter server does not answer.'));
    }
    if (!answer.ok) {
      throw new Error(await this._reason(answer));
    }
    return answer.json();
  }

  /** Proxies and Jupyter itself answer with bodies that are not ours. */
  private async _reason(answer: Response): Promise<string> {
    const said = this._trans.__('The server answered with %1.', answer.status);
    try {
      return ((await answer.json()) as { message?: string }).message || said;
    } catch {
      return said;
    }
  }
}
