/** Perfetto's viewer: it reads traces in the browser, and sends them nowhere. */
export const PERFETTO = 'https://ui.perfetto.dev';
/** Milliseconds from one question to the next, and until its page counts as out of reach. */
const [AGAIN, PATIENCE] = [100, 20_000];

/** What became of a window: its page waits for a trace, did not answer, or was closed. */
type Answer = 'ready' | 'silent' | 'closed';

/** Ask the page in a window until it answers: what it is sent before it listens is lost. */
export function askPerfetto(
  viewer: Window,
  patience = PATIENCE
): Promise<Answer> {
  return new Promise(resolve => {
    const end = (answer: Answer) => {
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
    }, AGAIN);
    const limit = setTimeout(() => end('silent'), patience);
  });
}

/** Hand a trace to a page that waits for one. */
export function sendTrace(
  viewer: Window,
  buffer: ArrayBuffer,
  fileName: string
): void {
  // For this origin only: a page that has replaced Perfetto's gets nothing.
  viewer.postMessage(
    { perfetto: { buffer, title: fileName, fileName } },
    PERFETTO
  );
}
