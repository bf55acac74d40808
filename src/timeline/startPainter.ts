import type { Order } from './orders';
import type { IPainter } from './painter';

/**
 * Start a painter in a thread of its own.
 *
 * `failed` is told why, if it cannot draw.
 */
export function startPainter(failed: (reason: string) => void): IPainter {
  const worker = new Worker(
    /* webpackChunkName: "painter" */ new URL(
      './painterWorker.js',
      import.meta.url
    )
  );
  // Without a message, if its script could not be loaded.
  worker.onerror = ({ message }) => failed(message ?? '');
  let orders: Order[] = [];
  return {
    obey: order => {
      orders.push(order);
      if (orders.length === 1) {
        // All of a frame at once: each message costs.
        queueMicrotask(() => {
          const canvases = orders.flatMap(one =>
            one.type === 'take' ? [one.canvas] : []
          );
          worker.postMessage(orders, canvases);
          orders = [];
        });
      }
    },
    dispose: () => worker.terminate()
  };
}
