import React from 'react';

import { Button, Note } from './controls';
import type { IPanelServices } from './services';

/**
 * Why the last request failed, until it is dismissed or another one is sent.
 */
export function ErrorNote({
  model,
  trans
}: IPanelServices): JSX.Element | null {
  const { error } = model;
  if (!error) {
    return null;
  }
  return (
    <Note kind="error">
      <p className="jp-dist-error">{error.message}</p>
      {error.hint && <p>{error.hint}</p>}
      <Button onClick={() => model.dismissError()}>
        {trans.__('Dismiss')}
      </Button>
    </Note>
  );
}
