import { Notification, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Contents } from '@jupyterlab/services';

import { trans } from '../model/trans';
import { download } from '../ui/download';
import { askPerfetto, PERFETTO, sendTrace } from './perfetto';

/**
 * Show a trace in Perfetto; where its page is out of reach, download the trace and say so.
 */
export async function openTrace(
  path: string,
  contents: Contents.IManager,
  settings: ServerConnection.ISettings
): Promise<void> {
  // At once: browsers let pages open windows only as long as a click is fresh.
  const viewer = window.open(PERFETTO);
  const name = PathExt.basename(path);
  try {
    const [trace, answer] = await Promise.all([
      load(path, contents, settings),
      viewer ? askPerfetto(viewer) : 'blocked'
    ]);
    if (viewer && answer === 'ready') {
      sendTrace(viewer, trace, name);
      return;
    }
    if (answer === 'closed') {
      return;
    }
    viewer?.close();
    download(new Blob([trace], { type: 'application/gzip' }), name);
    Notification.warning(
      answer === 'blocked'
        ? trans.__(
            'The browser blocked %1. %2 was downloaded: allow pop-ups for this page, or open it in Perfetto.',
            PERFETTO,
            name
          )
        : trans.__(
            '%1 did not respond. %2 was downloaded: open it in Perfetto where there is internet access.',
            PERFETTO,
            name
          ),
      { autoClose: false }
    );
  } catch (error) {
    viewer?.close();
    // Menus would say nothing.
    await showErrorMessage(
      trans.__('“%1” cannot be opened', name),
      error instanceof Error ? error : String(error)
    );
  }
}

async function load(
  path: string,
  contents: Contents.IManager,
  settings: ServerConnection.ISettings
): Promise<ArrayBuffer> {
  const url = await contents.getDownloadUrl(path);
  const response = await ServerConnection.makeRequest(url, {}, settings);
  if (!response.ok) {
    throw new Error(`${response.status} ${response.statusText}`.trim());
  }
  return response.arrayBuffer();
}
