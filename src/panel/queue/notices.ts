import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IQueueModel } from '../../model/queue';
import type { IJob } from '../../model/queueContract';
import { sayEnd } from '../../words/queueWords';

/** More ends at a time are told of in one sentence. */
const MOST = 3;

/**
 * Tell of own jobs that end while the page is open.
 */
export function notifyOfEnds(
  queue: IQueueModel,
  show: () => void,
  trans: TranslationBundle
): void {
  let known: ReadonlySet<string> | null = null;
  let last: readonly IJob[] | null = null;
  queue.changed.connect(() => {
    const { ended } = queue;
    if (!ended || ended === last) {
      return;
    }
    // Those at first had ended before.
    const news = known ? ended.filter(job => !known?.has(keyOf(job))) : [];
    known = new Set([...(known ?? []), ...ended.map(keyOf)]);
    last = ended;
    // Who cancels what has not started needs no news of it.
    const told = news.filter(
      ({ state, started }) => state !== 'CANCELLED' || started !== null
    );
    const actions = [{ label: trans.__('Show Queue'), callback: show }];
    if (told.length > MOST) {
      const failed = told.filter(isFailure).length;
      const words = trans.__('%1 jobs ended, %2 failed.', told.length, failed);
      emit(words, failed > 0);
    } else {
      told.forEach(job => emit(sayEnd(job, trans), isFailure(job)));
    }

    function emit(words: string, isBad: boolean): void {
      // A failure stays until it is read.
      if (isBad) {
        Notification.error(words, { autoClose: false, actions });
      } else {
        Notification.info(words, { autoClose: 10_000, actions });
      }
    }
  });
}

function keyOf({ id, attempt }: IJob): string {
  return `${id} ${attempt}`;
}

function isFailure({ state }: IJob): boolean {
  return state !== 'COMPLETED' && state !== 'CANCELLED';
}
