import React from 'react';

import { Button, Note } from './controls';
import { isAtField } from '../start/form';
import type { IPanelServices } from './services';

/**
 * Why the last request failed, until it is dismissed or another one is sent.
 */
export function ErrorNote(services: IPanelServices): JSX.Element | null {
  const { model, trans } = services;
  const { error } = model;
  if (!error || isAtField(services)) {
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
