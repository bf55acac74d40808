import { Button, ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import React, { useEffect, useState } from 'react';

import type { IApiError } from '../../model/contract';
import type { IJobDetails } from '../../model/detailsContract';
import { ENDED } from '../../model/queueContract';
import { trans } from '../../model/trans';
import { Clock, useNow } from '../../ui/clock';
import { Note, StatePill } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { sayJob } from '../../words/detailsWords';
import { nameJob } from '../../words/queueWords';
import { Actions } from './actions';
import { Curves } from './curves';
import { Facts } from './facts';
import { OutputPane } from './logPane';
import type { DetailsProps, IJobDetailsProps } from './props';
import { useDetails } from './useDetails';
import { Why } from './why';

export class JobWidget extends ReactWidget {
  constructor(
    private readonly _props: Omit<IJobDetailsProps, 'onName' | 'clock'>
  ) {
    super();
    this.addClass('jp-dist-JobWidget');
    this._onName(_props.job);
  }

  get job(): string {
    return this._props.job;
  }

  protected render(): JSX.Element {
    return (
      <JobDetails {...this._props} clock={this._clock} onName={this._onName} />
    );
  }

  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._follow(this.isVisible);
  }

  protected onAfterShow(): void {
    this._follow(true);
  }

  protected onAfterHide(): void {
    this._follow(false);
  }

  protected onBeforeDetach(msg: Message): void {
    this._follow(false);
    super.onBeforeDetach(msg);
  }

  /** Each change makes the server send the complete queue, so it is watched only while visible. */
  private _follow(isVisible: boolean): void {
    this._clock.isOn = isVisible;
    if (isVisible) {
      this._watching ??= this._props.model.queue.watch('all');
    } else {
      this._watching?.dispose();
      this._watching = null;
    }
  }

  private readonly _onName = (name: string): void => {
    this.title.label = trans.__('Job %1', name);
  };

  private readonly _clock = new Clock();
  private _watching: IDisposable | null = null;
}

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
  // The error of this tab's last action: the panel and other tabs have actions, too.
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
  const all = { ...props, details };
  return (
    <div className="jp-dist-JobDetails">
      <div className="jp-dist-JobDetails-about">
        <div className="jp-dist-JobDetails-head">
          <h2>{name}</h2>
          <StatePill kind={moodOf(details)} label={details.job.state} />
        </div>
        <Sentence {...all} />
        {problem}
        <Why {...all}>{why => <Actions {...all} send={send} why={why} />}</Why>
        <Curves {...all} />
        <Facts {...all} />
      </div>
      <OutputPane {...all} />
    </div>
  );
}

function moodOf({ job: { state } }: IJobDetails): 'ok' | 'wait' | 'error' {
  if (state === 'RUNNING' || state === 'COMPLETED') {
    return 'ok';
  }
  return ENDED.includes(state) && state !== 'CANCELLED' ? 'error' : 'wait';
}

/** The state, with the time since the start. */
function Sentence({ details, clock }: DetailsProps): JSX.Element {
  const now = useNow(clock);
  return <p>{sayJob(details.job, now)}</p>;
}
