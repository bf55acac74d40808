import React from 'react';

import { labelOf } from '../../model/cards';
import { joinWords } from '../../model/shellWords';
import { serverTime } from '../../model/serverTime';
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
import type { DetailsProps } from './jobDetails';

/**
 * What was asked for, when it ran, and what came of each attempt.
 */
export function Facts(props: DetailsProps): JSX.Element {
  const { details, model } = props;
  const { job, command, dependencies, variables, attempts } = details;
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const now = serverTime();
  const moment = (time: number) => formatMoment(time, now);
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
  return (
    <dl className="jp-dist-JobFacts">
      <Fact name={trans.__('Command')}>
        <code>{job.spec.notebook || joinWords(command)}</code>
      </Fact>
      <Fact name={trans.__('Folder')}>
        <code>{job.spec.cwd}</code>
      </Fact>
      {needs && <Fact name={trans.__('Resources')}>{needs}</Fact>}
      <Fact name={trans.__('Time limit')}>
        {job.limit === null ? trans.__('none') : formatDuration(job.limit)}
      </Fact>
      <Fact name={trans.__('Submitted')}>{moment(job.submitted)}</Fact>
      {dependencies.length > 0 && (
        <Fact
          name={
            dependencies.some(({ any }) => any)
              ? trans.__('Waits for one of')
              : trans.__('Waits for')
          }
        >
          <Dependencies {...props} />
        </Fact>
      )}
      {attempts.map(attempt => (
        <Fact
          key={attempt.attempt}
          name={
            attempts.length > 1
              ? trans.__('Attempt %1', attempt.attempt)
              : trans.__('Run')
          }
        >
          {sayAttempt(attempt, now)}
        </Fact>
      ))}
      {job.spec.comment && (
        <Fact name={trans.__('Comment')}>{job.spec.comment}</Fact>
      )}
      <Fact name={trans.__('Environment')}>
        <details>
          <summary>
            {trans._n('%1 variable', '%1 variables', variables.length)}
          </summary>
          <code>{variables.join(' ')}</code>
        </details>
      </Fact>
    </dl>
  );
}

interface IFactProps {
  name: string;
  children: React.ReactNode;
}

function Fact({ name, children }: IFactProps): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** The jobs after which it starts, as links. */
function Dependencies(props: DetailsProps): JSX.Element {
  const { details, commands } = props;
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
