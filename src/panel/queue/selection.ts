import { useState } from 'react';

/**
 * The jobs that are selected, by their labels.
 */
export interface ISelection {
  has(job: string): boolean;
  toggle(job: string): void;
  clear(): void;
  /** What an action on this job is about: all that are selected, if it is one of them. */
  with(job: string): string[];
}

export function useSelection(): ISelection {
  const [jobs, setJobs] = useState<readonly string[]>([]);
  const has = (job: string) => jobs.includes(job);
  return {
    has,
    toggle: job =>
      setJobs(has(job) ? jobs.filter(one => one !== job) : [...jobs, job]),
    clear: () => setJobs([]),
    with: job => (has(job) ? [...jobs] : [job])
  };
}
