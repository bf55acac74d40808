import { Clipboard, showErrorMessage } from '@jupyterlab/apputils';
import { Button } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React, { useState } from 'react';

import { ENDED } from '../../model/queueContract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { jobCommand } from '../../words/submitWords';
import type { DetailsProps } from './jobDetails';

interface IActionsProps extends DetailsProps {
  /** Does something with the job, and shows what goes wrong. */
  send: (action: () => Promise<unknown>) => Promise<void>;
}

/**
 * What can be done with a job.
 */
export function Actions(props: IActionsProps): JSX.Element {
  const { details, model, commands, send } = props;
  const { request, notebook, job } = details;
  const { queue } = model;
  const jobs = [job.label];
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      const schema = await queue.requests.submitSchema();
      Clipboard.copyToSystem(jobCommand(request ?? {}, schema, ''));
      setIsCopied(true);
    } catch (error) {
      await showErrorMessage(
        trans.__('The command could not be copied'),
        error instanceof Error ? error : String(error)
      );
    }
  };
  return (
    <div className="jp-dist-Actions">
      {notebook !== null && job.started !== null && (
        <Button
          small
          onClick={() =>
            void commands.execute(CommandIDs.openJobNotebook, {
              job: job.label
            })
          }
        >
          {trans.__('Open notebook')}
        </Button>
      )}
      {ENDED.includes(job.state) ? (
        <Button
          small
          onClick={() => void send(() => queue.act('requeue', jobs))}
        >
          {trans.__('Requeue')}
        </Button>
      ) : (
        <Button
          small
          onClick={() =>
            void send(() => commands.execute(CommandIDs.cancelJobs, { jobs }))
          }
        >
          {trans.__('Cancel…')}
        </Button>
      )}
      {request && (
        <>
          <Button
            small
            onClick={() =>
              void commands.execute(CommandIDs.submitJob, {
                request: request as ReadonlyPartialJSONObject
              })
            }
          >
            {trans.__('Submit one like this…')}
          </Button>
          <Button small onClick={() => void copy()}>
            {isCopied ? trans.__('Copied') : trans.__('Copy as command')}
          </Button>
        </>
      )}
    </div>
  );
}
