import type { Order } from './orders';
import type { IPainter } from './painter';
import { queue } from './queue';

/**
 * A painter in a thread of its own, which starts with the first order.
 *
 * `failed` is told why, if it cannot draw.
 */
export function startPainter(failed: (reason: string) => void): IPainter {
  let worker: Worker | null = null;
  let orders: readonly Order[] = [];
  let isBusy = false;
  let isBroken = false;
  const fail = (reason: string) => {
    isBroken = true;
    orders = [];
    failed(reason);
  };
  const send = () => {
    const sent = orders;
    if (isBusy || !sent.length) {
      return;
    }
    isBusy = true;
    orders = [];
    try {
      worker ??= start();
    } catch (error) {
      // Its script may be on another server, or the page's policy against it.
      fail(String(error));
      return;
    }
    const canvases = sent.flatMap(one =>
      one.type === 'take' ? [one.canvas] : []
    );
    worker.postMessage(sent, canvases);
  };
  const start = () => {
    const made = new Worker(
      /* webpackChunkName: "painter" */ new URL(
        './painterWorker.js',
        import.meta.url
      )
    );
    // Without a message, if its script could not be loaded.
    made.onerror = ({ message }) => fail(message ?? '');
    made.onmessage = () => {
      isBusy = false;
      send();
    };
    return made;
  };
  return {
    obey: order => {
      if (isBroken) {
        return;
      }
      orders = queue(orders, order);
      if (orders.length === 1) {
        // All of a frame at once: each message costs.
        queueMicrotask(send);
      }
    },
    dispose: () => {
      // What still waits must not start it again.
      isBroken = true;
      orders = [];
      worker?.terminate();
    }
  };
}
