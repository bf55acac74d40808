import React from 'react';

import type { IJob } from '../../model/queueContract';
import { serverTime } from '../../model/serverTime';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { formatMoment } from '../../words/format';
import { nameJob, sayExit, sayRunTime } from '../../words/queueWords';
import type { IPanelServices } from '../services';
import { RowFrame } from './rowFrame';
import type { ISelection } from './selection';

/** Whether they are shown, as the user chose. */
const SHOW_ENDED = 'showEndedJobs';

interface IEndedJobsProps extends IPanelServices {
  jobs: readonly IJob[];
  selection: ISelection;
}

/** Own jobs that ended within a day, folded away at first. */
export function EndedJobs(props: IEndedJobsProps): JSX.Element {
  const { jobs, uiState } = props;
  const isOpen = useModel(uiState, state => state.get(SHOW_ENDED) === true);
  const now = serverTime();
  const label = trans.__('Ended in the last 24 h');
  return (
    <div className="jp-dist-EndedJobs">
      <button
        type="button"
        className="jp-dist-Fold"
        aria-expanded={isOpen}
        onClick={() => uiState.set(SHOW_ENDED, !isOpen)}
      >
        <span>{label}</span>
        <span className="jp-dist-Fold-count">{jobs.length}</span>
      </button>
      {isOpen && (
        <ul className="jp-dist-Cards" aria-label={label}>
          {jobs.map(job => (
            <RowFrame
              {...props}
              key={job.id}
              name={nameJob(job.label, job.name)}
              place={formatMoment(job.ended ?? now, now)}
              mood={
                job.state === 'COMPLETED'
                  ? 'good'
                  : job.state === 'CANCELLED'
                    ? 'held'
                    : 'bad'
              }
              title={job.detail}
              job={job.label}
            >
              <span>{sayExit(job)}</span>
              <span className="jp-dist-quiet">{sayRunTime(job)}</span>
            </RowFrame>
          ))}
        </ul>
      )}
    </div>
  );
}
