import { useEffect, useState } from 'react';

import { ApiError } from '../../model/client';
import type { IApiError } from '../../model/contract';
import type { IJobDetails } from '../../model/detailsContract';
import type { IQueueModel } from '../../model/queue';
import { ENDED } from '../../model/queueContract';

/** Milliseconds between two looks at the GPUs of a job that runs: the server reads them as often. */
const PAUSE = 10_000;

interface IAnswer {
  details: IJobDetails | null;
  error: IApiError | null;
}

/**
 * All about a job, again whenever something in the queue has changed.
 */
export function useDetails(job: string, queue: IQueueModel): IAnswer {
  const [answer, setAnswer] = useState<IAnswer>({ details: null, error: null });
  const state = answer.details?.job.state;
  const runs = state !== undefined && !ENDED.includes(state);
  useEffect(() => {
    let newest = 0;
    const load = async (): Promise<void> => {
      const number = ++newest;
      try {
        const details = await queue.requests.jobDetails(job);
        if (number === newest) {
          setAnswer({ details, error: null });
        }
      } catch (error) {
        if (!(error instanceof ApiError)) {
          throw error;
        }
        if (number === newest) {
          setAnswer(({ details }) => ({ details, error }));
        }
      }
    };
    const onChanged = () => void load();
    queue.changed.connect(onChanged);
    const watching = queue.watch('all');
    onChanged();
    const timer = setInterval(() => {
      if (runs && !document.hidden) {
        onChanged();
      }
    }, PAUSE);
    return () => {
      newest = Infinity;
      clearInterval(timer);
      watching.dispose();
      queue.changed.disconnect(onChanged);
    };
  }, [job, queue, runs]);
  return answer;
}
