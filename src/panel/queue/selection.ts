import { useEffect, useRef, useState } from 'react';

import type { IQueueRow } from '../../model/queueContract';

/** The jobs that are selected, by their labels. */
export interface ISelection {
  has(job: string): boolean;
  toggle(job: string): void;
  clear(): void;
  /** What an action on this job is about: all that are selected, if it is one of them. */
  with(job: string): string[];
}

/** A job that ends is no longer selected: what was to be done with it is done. */
export function useSelection(rows: readonly IQueueRow[] | null): ISelection {
  const [jobs, setJobs] = useState<readonly string[]>([]);
  const before = useRef<string[]>([]);
  useEffect(() => {
    const now = (rows ?? []).map(({ id }) => id);
    const gone = before.current.filter(job => !now.includes(job));
    before.current = now;
    if (gone.length > 0) {
      setJobs(jobs => jobs.filter(job => !gone.includes(job)));
    }
  }, [rows]);
  const has = (job: string) => jobs.includes(job);
  return {
    has,
    toggle: job =>
      setJobs(has(job) ? jobs.filter(one => one !== job) : [...jobs, job]),
    clear: () => setJobs([]),
    with: job => (has(job) ? [...jobs] : [job])
  };
}
