import { useEffect, useState } from 'react';

import { ApiError } from '../../model/client';
import type { IApiError } from '../../model/contract';
import type { IJobDetails } from '../../model/detailsContract';
import type { IQueueModel } from '../../model/queue';
import { ENDED } from '../../model/queueContract';
import type { Clock } from '../../ui/clock';

/** Milliseconds between two looks at the GPUs of a job that runs: the server reads them as often. */
const PAUSE = 10_000;

interface IAnswer {
  details: IJobDetails | null;
  error: IApiError | null;
}

/**
 * All about a job, again whenever something in the queue has changed, while somebody can see it; who
 * shows it follows the queue meanwhile.
 */
export function useDetails(
  job: string,
  queue: IQueueModel,
  clock: Clock
): IAnswer {
  const [answer, setAnswer] = useState<IAnswer>({ details: null, error: null });
  useEffect(() => {
    let isOld = true;
    let isReading = false;
    let isGone = false;
    let runs = false;
    let readAt = -Infinity;
    const isSeen = () => clock.isOn && !document.hidden;
    const loadOnce = async (): Promise<void> => {
      isOld = false;
      try {
        const details = await queue.requests.jobDetails(job);
        runs = !ENDED.includes(details.job.state);
        if (!isGone) {
          setAnswer({ details, error: null });
        }
      } catch (error) {
        if (!(error instanceof ApiError)) {
          throw error;
        }
        if (!isGone) {
          setAnswer(({ details }) => ({ details, error }));
        }
      }
      readAt = Date.now();
    };
    /** What changes while an answer is on its way is asked for after it. */
    const load = async (): Promise<void> => {
      if (isReading) {
        return;
      }
      isReading = true;
      try {
        do {
          await loadOnce();
        } while (isOld && !isGone && isSeen());
      } finally {
        isReading = false;
      }
    };
    const look = () => {
      const isDue = isOld || (runs && Date.now() - readAt >= PAUSE);
      if (isDue && isSeen()) {
        void load();
      }
    };
    const onChanged = () => {
      isOld = true;
      look();
    };
    queue.changed.connect(onChanged);
    // Also where it is hidden: its tab is named after the job.
    void load();
    const unsubscribe = clock.subscribe(look);
    return () => {
      isGone = true;
      unsubscribe();
      queue.changed.disconnect(onChanged);
    };
  }, [job, queue, clock]);
  return answer;
}
