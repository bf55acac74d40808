import { Clipboard, showErrorMessage } from '@jupyterlab/apputils';
import { Button } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React, { useState } from 'react';

import { ENDED } from '../../model/queueContract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { jobCommand } from '../../words/submitWords';
import type { DetailsProps } from './props';

interface IActionsProps extends DetailsProps {
  /** Does something with the job, and shows its error. */
  send: (action: () => Promise<unknown>) => Promise<void>;
  /** The button that asks why its ranks wait. */
  why: JSX.Element | null;
}

export function Actions(props: IActionsProps): JSX.Element {
  const { details, model, commands, send, why } = props;
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
      const title = trans.__('The command could not be copied');
      await showErrorMessage(title, error as Error);
    }
  };
  const button = (label: string, act: () => Promise<unknown>) => (
    <Button small onClick={() => void act()}>
      {label}
    </Button>
  );
  return (
    <div className="jp-dist-Actions">
      {notebook !== null &&
        job.started !== null &&
        button(trans.__('Open notebook'), () =>
          commands.execute(CommandIDs.openJobNotebook, { job: job.label })
        )}
      {ENDED.includes(job.state)
        ? button(trans.__('Requeue'), () =>
            send(() => queue.act('requeue', jobs))
          )
        : button(trans.__('Cancel…'), () =>
            send(() => commands.execute(CommandIDs.cancelJobs, { jobs }))
          )}
      {why}
      {request &&
        button(trans.__('Submit one like this…'), () =>
          commands.execute(CommandIDs.submitJob, {
            request: request as ReadonlyPartialJSONObject
          })
        )}
      {request &&
        button(
          isCopied ? trans.__('Copied') : trans.__('Copy as command'),
          copy
        )}
    </div>
  );
}
