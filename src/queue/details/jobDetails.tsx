import { Clipboard } from '@jupyterlab/apputils';
import type { IRenderMime } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Button } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React, { useEffect, useState } from 'react';

import { ApiError } from '../../model/client';
import type { IApiError } from '../../model/contract';
import type { IAttempt, IJobDetails } from '../../model/detailsContract';
import { joinWords } from '../../model/shellWords';
import { ENDED } from '../../model/queueContract';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import type { IPoolsModel } from '../../model/tokens';
import { labelOf } from '../../model/cards';
import { StatePill } from '../../ui/controls';
import { sayJob, sayUse, requestLike } from '../../words/detailsWords';
import { formatDuration } from '../../words/format';
import { formatMoment, nameJob } from '../../words/queueWords';
import { jobCommand } from '../../words/submitWords';
import { LogPane } from './logPane';

export interface IJobDetailsProps {
  /** The job's label. */
  job: string;
  model: IPoolsModel;
  commands: CommandRegistry;
  sanitizer: IRenderMime.ISanitizer;
  /** Told the name of the job when it is known. */
  onName: (name: string) => void;
  trans: TranslationBundle;
}

/**
 * All about one job, and what it prints.
 */
export function JobDetails(props: IJobDetailsProps): JSX.Element {
  const { job, model, onName, trans } = props;
  const [details, setDetails] = useState<IJobDetails | null>(null);
  const [error, setError] = useState<IApiError | null>(null);
  const { queue } = model;
  useEffect(() => {
    let isWanted = true;
    const load = () =>
      queue.requests.jobDetails(job).then(
        found => {
          if (isWanted) {
            setDetails(found);
            setError(null);
            onName(nameJob(found.job.label, found.job.name));
          }
        },
        (error: unknown) => {
          if (!(error instanceof ApiError)) {
            throw error;
          }
          if (isWanted) {
            setError(error);
          }
        }
      );
    const onChanged = () => void load();
    queue.changed.connect(onChanged);
    const watching = queue.watch('all');
    onChanged();
    return () => {
      isWanted = false;
      watching.dispose();
      queue.changed.disconnect(onChanged);
    };
  }, [job, queue, onName]);
  if (!details) {
    return (
      <div className="jp-dist-JobDetails">
        {error ? (
          <div role="alert">
            <p className="jp-dist-error">{error.message}</p>
            {error.hint && <p>{error.hint}</p>}
          </div>
        ) : (
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
      <header>
        <h2>{nameJob(details.job.label, details.job.name)}</h2>
        <StatePill
          kind={
            state === 'RUNNING' || state === 'COMPLETED'
              ? 'ok'
              : ENDED.includes(state) && state !== 'CANCELLED'
                ? 'error'
                : 'wait'
          }
          label={state}
        />
        <Actions {...props} details={details} />
      </header>
      <p>{sayJob(details.job, serverTime(), trans)}</p>
      <Facts {...props} details={details} />
      <LogPane
        key={job}
        read={query => queue.requests.jobLines(job, query)}
        sanitizer={props.sanitizer}
        file={details.output}
        trans={trans}
      />
    </div>
  );
}

type WithDetails = IJobDetailsProps & { details: IJobDetails };

function Actions({
  details,
  model,
  commands,
  trans
}: WithDetails): JSX.Element {
  const { label, state } = details.job;
  const jobs = [label];
  const [isCopied, setIsCopied] = useState(false);
  return (
    <div className="jp-dist-Actions">
      {ENDED.includes(state) ? (
        <Button small onClick={() => void model.queue.act('requeue', jobs)}>
          {trans.__('Requeue')}
        </Button>
      ) : (
        <Button
          small
          onClick={() => void commands.execute(CommandIDs.cancelJobs, { jobs })}
        >
          {trans.__('Cancel…')}
        </Button>
      )}
      <Button
        small
        onClick={() =>
          void commands.execute(CommandIDs.submitJob, {
            request: requestLike(details) as ReadonlyPartialJSONObject
          })
        }
      >
        {trans.__('Submit one like this…')}
      </Button>
      <Button
        small
        onClick={() =>
          void model.queue.requests.submitSchema().then(schema => {
            Clipboard.copyToSystem(
              jobCommand(requestLike(details), schema, '')
            );
            setIsCopied(true);
          })
        }
      >
        {isCopied ? trans.__('Copied') : trans.__('Copy as command')}
      </Button>
    </div>
  );
}

function Facts(props: WithDetails): JSX.Element {
  const { details, model, commands, trans } = props;
  const { job, command, dependencies, variables, attempts } = details;
  const now = serverTime();
  const moment = (time: number | null) =>
    time === null ? '–' : formatMoment(time, now);
  const gpus = (model.gpus?.gpus ?? [])
    .filter(({ uuid }) => job.gpu_uuids.includes(uuid))
    .map(labelOf);
  const facts: [string, React.ReactNode][] = [
    [
      trans.__('Command'),
      <code key="command">{job.spec.notebook || joinWords(command)}</code>
    ],
    [trans.__('Folder'), <code key="folder">{job.spec.cwd}</code>],
    [
      trans.__('GPUs'),
      gpus.length
        ? gpus.join(', ')
        : job.gpus
          ? String(job.gpus)
          : trans.__('CPU')
    ],
    [
      trans.__('Time limit'),
      job.limit === null ? trans.__('none') : formatDuration(job.limit, trans)
    ],
    [
      trans.__('Submitted, started, ended'),
      [job.submitted, job.started, job.ended].map(moment).join(' · ')
    ]
  ];
  if (dependencies.length) {
    facts.push([
      trans.__('After jobs'),
      dependencies.map(({ label, name, state, type }) => (
        <button
          key={`${label} ${type}`}
          type="button"
          className="jp-dist-Link"
          title={`${type} · ${state}`}
          onClick={() =>
            void commands.execute(CommandIDs.openJob, { job: label })
          }
        >
          {nameJob(label, name)}
        </button>
      ))
    ]);
  }
  attempts.forEach(attempt =>
    facts.push([
      trans.__('Attempt %1', attempt.attempt),
      sayAttempt(attempt, trans)
    ])
  );
  facts.push([
    trans.__('Environment'),
    <details key="environment">
      <summary>
        {trans._n('%1 variable', '%1 variables', variables.length)}
      </summary>
      <code>{variables.join(' ')}</code>
    </details>
  ]);
  return (
    <dl className="jp-dist-JobFacts">
      {facts.map(([name, value]) => (
        <React.Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </React.Fragment>
      ))}
    </dl>
  );
}

function sayAttempt(attempt: IAttempt, trans: TranslationBundle): string {
  const { state, started, ended } = attempt;
  return [
    state ?? 'RUNNING',
    started !== null &&
      ended !== null &&
      formatDuration(ended - started, trans),
    sayUse(attempt, trans)
  ]
    .filter(Boolean)
    .join(' · ');
}
