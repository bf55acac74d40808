import type { IRenderMime } from '@jupyterlab/rendermime';
import { Button } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import React, { useEffect, useState } from 'react';

import type { IApiError } from '../../model/contract';
import type { IJobDetails } from '../../model/detailsContract';
import { ENDED } from '../../model/queueContract';
import type { IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import type { Clock } from '../../ui/clock';
import { Note, StatePill } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { sayJob } from '../../words/detailsWords';
import { nameJob } from '../../words/queueWords';
import { Actions } from './actions';
import { Curves } from './curves';
import { Facts } from './facts';
import { OutputPane } from './outputPane';
import { useDetails } from './useDetails';

export interface IJobDetailsProps {
  /** The job's label. */
  job: string;
  model: IPoolsModel;
  commands: CommandRegistry;
  sanitizer: IRenderMime.ISanitizer;
  clock: Clock;
  /** Told how the job is called when that is known. */
  onName: (name: string) => void;
}

/** What the parts of the tab are given. */
export type DetailsProps = IJobDetailsProps & { details: IJobDetails };

/**
 * All about one job, and what it prints.
 */
export function JobDetails(props: IJobDetailsProps): JSX.Element {
  const { job, model, clock, onName } = props;
  const { queue } = model;
  const { details, error } = useDetails(job, queue, clock);
  const name = details && nameJob(details.job.label, details.job.name);
  useEffect(() => {
    if (name !== null) {
      onName(name);
    }
  }, [name, onName]);
  // Of the action that this tab has sent last: the panel and other tabs send some too.
  const [ownError, setOwnError] = useState<IApiError | null>(null);
  const send = async (action: () => Promise<unknown>): Promise<void> => {
    const before = queue.actionError;
    await action();
    setOwnError(queue.actionError === before ? null : queue.actionError);
  };
  const actionError = useModel(queue, ({ actionError }) => actionError);
  const wrong = error ?? (actionError === ownError ? ownError : null);
  const problem = wrong && (
    <Note kind="error">
      <p className="jp-dist-error">{wrong.message}</p>
      {wrong.hint && <p>{wrong.hint}</p>}
      {wrong === ownError && (
        <Button small onClick={() => queue.dismissError()}>
          {trans.__('Dismiss')}
        </Button>
      )}
    </Note>
  );
  if (!details) {
    return (
      <div className="jp-dist-JobDetails">
        {problem ?? (
          <p className="jp-dist-quiet jp-dist-loading" role="status">
            {trans.__('Loading…')}
          </p>
        )}
      </div>
    );
  }
  const { state } = details.job;
  return (
    <div className="jp-dist-JobDetails">
      <div className="jp-dist-JobDetails-about">
        <div className="jp-dist-JobDetails-head">
          <h2>{name}</h2>
          <StatePill kind={moodOf(details)} label={state} />
        </div>
        <Sentence {...props} details={details} />
        {problem}
        <Actions {...props} details={details} send={send} />
        <Curves {...props} details={details} />
        <Facts {...props} details={details} />
      </div>
      <OutputPane {...props} details={details} />
    </div>
  );
}

function moodOf({ job: { state } }: IJobDetails): 'ok' | 'wait' | 'error' {
  if (state === 'RUNNING' || state === 'COMPLETED') {
    return 'ok';
  }
  return ENDED.includes(state) && state !== 'CANCELLED' ? 'error' : 'wait';
}

/** How it stands, with the time for which it has run. */
function Sentence({ details, clock }: DetailsProps): JSX.Element {
  const now = useNow(clock);
  return <p>{sayJob(details.job, now)}</p>;
}
