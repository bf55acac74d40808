import { Notification, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { ServerConnection, type Contents } from '@jupyterlab/services';

import { trans } from '../model/trans';
import { download } from '../ui/files';

/** The viewer reads traces in the browser, and sends them nowhere. */
export const PERFETTO = 'https://ui.perfetto.dev';

/** Show a trace in Perfetto; if its page is out of reach, download the trace and say so. */
export async function openTrace(
  path: string,
  contents: Contents.IManager,
  settings: ServerConnection.ISettings
): Promise<void> {
  // At once: browsers only allow it right after a click.
  const viewer = window.open(PERFETTO);
  const name = PathExt.basename(path);
  try {
    const [trace, answer] = await Promise.all([
      load(path, contents, settings),
      viewer ? askPerfetto(viewer) : 'blocked'
    ]);
    if (viewer && answer === 'ready') {
      const perfetto = { buffer: trace, title: name, fileName: name };
      // Only for this origin: the window may have another page by now.
      viewer.postMessage({ perfetto }, PERFETTO);
    }
    if (answer === 'ready' || answer === 'closed') {
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
    const title = trans.__('“%1” cannot be opened', name);
    await showErrorMessage(title, error as Error);
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

/** Wait until the page in a window is ready for a trace: it loses what arrives earlier. */
export function askPerfetto(
  viewer: Window,
  patience = 20_000
): Promise<'ready' | 'silent' | 'closed'> {
  return new Promise(resolve => {
    const end = (answer: 'ready' | 'silent' | 'closed') => {
      clearInterval(asking);
      clearTimeout(limit);
      window.removeEventListener('message', onMessage);
      resolve(answer);
    };
    const onMessage = ({ source, origin, data }: MessageEvent) => {
      if (source === viewer && origin === PERFETTO && data === 'PONG') {
        end('ready');
      }
    };
    window.addEventListener('message', onMessage);
    const asking = setInterval(() => {
      if (viewer.closed) {
        end('closed');
      } else {
        viewer.postMessage('PING', PERFETTO);
      }
    }, 100);
    const limit = setTimeout(() => end('silent'), patience);
  });
}
