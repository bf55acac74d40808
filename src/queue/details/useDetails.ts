import { useEffect, useState } from 'react';

import { ApiError } from '../../model/restClient';
import type { IApiError } from '../../model/contract';
import type { IJobDetails } from '../../model/detailsContract';
import type { IQueueModel } from '../../model/queue';
import { ENDED } from '../../model/queueContract';
import type { Clock } from '../../ui/clock';

/** Milliseconds; the server reads the GPUs of a running job as often. */
const PAUSE = 10_000;

interface IAnswer {
  details: IJobDetails | null;
  error: IApiError | null;
}

/** A job's details, updated after each change of the queue while the tab is visible. */
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
    const load = async (): Promise<void> => {
      isReading = true;
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
      } finally {
        readAt = Date.now();
        isReading = false;
      }
      look();
    };
    const look = () => {
      const isDue = isOld || (runs && Date.now() - readAt >= PAUSE);
      const isSeen = clock.isOn && !document.hidden && !isGone;
      if (isDue && isSeen && !isReading) {
        void load();
      }
    };
    const onChanged = () => {
      isOld = true;
      look();
    };
    queue.changed.connect(onChanged);
    // Also while it is hidden: the tab's title has the job's name.
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
