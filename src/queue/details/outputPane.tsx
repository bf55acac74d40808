import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import { trans } from '../../model/trans';
import type { DetailsProps } from './jobDetails';
import { LogPane } from './logPane';

/**
 * What a job prints: its output or, where these are in another file, its errors.
 */
export function OutputPane(props: DetailsProps): JSX.Element {
  const { job, details, model, sanitizer } = props;
  const { output, error } = details;
  const { requests } = model.queue;
  const [showsErrors, setShowsErrors] = useState(false);
  const nameOf = (isError: boolean) =>
    isError ? trans.__('Errors') : trans.__('Output');
  const shown = (showsErrors && error) || output;
  return (
    <LogPane
      // What it prints in its next attempt is added to the same file.
      key={`${job} ${details.job.attempt}`}
      read={query =>
        requests.jobLines(
          job,
          shown === output ? query : { ...query, error: 1 }
        )
      }
      label={nameOf(showsErrors)}
      file={shown}
      choice={
        error !== null && (
          <div
            className="jp-dist-LogPane-choice"
            role="group"
            aria-label={trans.__('Standard output or standard error')}
          >
            {[false, true].map(isError => (
              <Button
                key={`${isError}`}
                small
                aria-pressed={isError === showsErrors}
                onClick={() => setShowsErrors(isError)}
              >
                {nameOf(isError)}
              </Button>
            ))}
          </div>
        )
      }
      {...{ sanitizer }}
    />
  );
}
