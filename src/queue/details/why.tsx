import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import type { ILaunchVerdict } from '../../model/detailsContract';
import { ApiError } from '../../model/restClient';
import { trans } from '../../model/trans';
import { ErrorText, Note, Sentence } from '../../ui/controls';
import type { DetailsProps } from './props';

type Answer =
  'asked' | ApiError | { launches: readonly ILaunchVerdict[]; at: Date };

interface IWhyProps extends DetailsProps {
  /** Draws the job's buttons, of which one asks. */
  children: (button: JSX.Element | null) => JSX.Element;
}

/** Which rank of a running job the others wait for, asked when somebody presses the button. */
export function Why({ details, model, children }: IWhyProps): JSX.Element {
  const { job } = details;
  const [answer, setAnswer] = useState<Answer | null>(null);
  if (job.state !== 'RUNNING') {
    return children(null);
  }
  const ask = async (): Promise<void> => {
    setAnswer('asked');
    try {
      const { launches } = await model.queue.requests.jobVerdict(job.label);
      setAnswer({ launches, at: new Date() });
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      setAnswer(error);
    }
  };
  const isAsked = answer === 'asked';
  const button = (
    <Button
      small
      disabled={isAsked}
      title={trans.__('Why do its ranks wait?')}
      onClick={() => void ask()}
    >
      {isAsked ? trans.__('Asking the ranks…') : trans.__('Why?')}
    </Button>
  );
  return (
    <>
      {children(button)}
      <div className="jp-dist-JobWhy" role="status">
        {answer && !isAsked && <Said answer={answer} />}
      </div>
    </>
  );
}

function Said({ answer }: { answer: Exclude<Answer, 'asked'> }): JSX.Element {
  if (answer instanceof ApiError) {
    return (
      <Note kind="error">
        <ErrorText error={answer} />
      </Note>
    );
  }
  const time = answer.at.toLocaleTimeString();
  return (
    <>
      {answer.launches.map(({ text, stacks, verdict, pool }, index) => (
        <Note key={index} kind={verdict?.stuck ? 'error' : 'info'}>
          {pool && <p>{trans.__('Pool %1', pool)}</p>}
          <p>
            <Sentence text={text} />
          </p>
          <p className="jp-dist-quiet">{trans.__('Asked at %1', time)}</p>
          <details>
            <summary>{trans.__('Stacks of all ranks')}</summary>
            <pre className="jp-dist-Log" tabIndex={0}>
              {stacks}
            </pre>
          </details>
        </Note>
      ))}
    </>
  );
}
