import React from 'react';

import { labelOf } from '../../model/cards';
import { serverTime } from '../../model/serverTime';
import { joinWords } from '../../model/shellWords';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { sayAttempt } from '../../words/detailsWords';
import {
  formatBytes,
  formatDuration,
  formatMoment,
  joinFacts
} from '../../words/format';
import { nameJob } from '../../words/queueWords';
import type { DetailsProps } from './props';

/** The request, when the job ran, and the result of each attempt. */
export function Facts(props: DetailsProps): JSX.Element {
  const { details, model } = props;
  const { job, command, dependencies, variables, attempts } = details;
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const now = serverTime();
  const held = gpus
    .filter(({ uuid }) => job.gpu_uuids.includes(uuid))
    .map(labelOf);
  const needs = joinFacts([
    held.length
      ? trans._n('GPU %2', 'GPUs %2', held.length, held.join(', '))
      : job.gpus > 0 && trans._n('%1 GPU', '%1 GPUs', job.gpus),
    job.cpus > 0 && trans._n('%1 CPU core', '%1 CPU cores', job.cpus),
    job.memory > 0 && trans.__('%1 memory', formatBytes(job.memory))
  ]);
  const fact = (name: string, value: React.ReactNode) => (
    <React.Fragment key={name}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </React.Fragment>
  );
  return (
    <dl className="jp-dist-JobFacts">
      {fact(
        trans.__('Command'),
        <code>{job.spec.notebook || joinWords(command)}</code>
      )}
      {fact(trans.__('Folder'), <code>{job.spec.cwd}</code>)}
      {needs && fact(trans.__('Resources'), needs)}
      {fact(
        trans.__('Time limit'),
        job.limit === null ? trans.__('none') : formatDuration(job.limit)
      )}
      {fact(trans.__('Submitted'), formatMoment(job.submitted, now))}
      {dependencies.length > 0 &&
        fact(
          dependencies.some(({ any }) => any)
            ? trans.__('Waits for one of')
            : trans.__('Waits for'),
          <Dependencies {...props} />
        )}
      {attempts.map(attempt =>
        fact(
          attempts.length > 1
            ? trans.__('Attempt %1', attempt.attempt)
            : trans.__('Run'),
          sayAttempt(attempt, now)
        )
      )}
      {job.spec.comment && fact(trans.__('Comment'), job.spec.comment)}
      {fact(
        trans.__('Environment'),
        <details>
          <summary>
            {trans._n('%1 variable', '%1 variables', variables.length)}
          </summary>
          <code>{variables.join(' ')}</code>
        </details>
      )}
    </dl>
  );
}

function Dependencies({ details, commands }: DetailsProps): JSX.Element {
  return (
    <ul>
      {details.dependencies.map(({ label, name, state, dependency }) => (
        <li key={dependency}>
          <button
            type="button"
            className="jp-dist-Link"
            onClick={() =>
              void commands.execute(CommandIDs.openJob, { job: label })
            }
          >
            {nameJob(label, name)}
          </button>
          <span className="jp-dist-quiet">
            {joinFacts([dependency, state])}
          </span>
        </li>
      ))}
    </ul>
  );
}
