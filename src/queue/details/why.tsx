import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import type { ILaunchVerdict } from '../../model/detailsContract';
import { ApiError } from '../../model/restClient';
import { trans } from '../../model/trans';
import { ErrorText, Note, Sentence } from '../../ui/controls';
import type { DetailsProps } from './props';

type Answer =
  'asked' | ApiError | { launches: readonly ILaunchVerdict[]; at: Date };

/** Which rank of a running job the others wait for, asked when somebody presses the button. */
export function Why({ details, model }: DetailsProps): JSX.Element | null {
  const { job } = details;
  const [answer, setAnswer] = useState<Answer | null>(null);
  if (job.state !== 'RUNNING') {
    return null;
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
  return (
    <div className="jp-dist-JobWhy">
      <div className="jp-dist-Actions">
        <Button
          small
          disabled={isAsked}
          title={trans.__('Why do its ranks wait?')}
          onClick={() => void ask()}
        >
          {isAsked ? trans.__('Asking the ranks…') : trans.__('Why?')}
        </Button>
      </div>
      <div role="status">{answer && !isAsked && <Said answer={answer} />}</div>
    </div>
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
            <pre className="jp-dist-Log">{stacks}</pre>
          </details>
        </Note>
      ))}
    </>
  );
}
