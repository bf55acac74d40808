import React from 'react';

import { Button, Note } from '../../ui/controls';
import { isAtField } from '../start/form';
import type { IPanelServices } from '../services';
import { useModel } from '../../ui/useModel';

/**
 * Why the last request failed, until it is dismissed or another one is sent.
 */
export function ErrorNote({
  model,
  start,
  trans
}: IPanelServices): JSX.Element | null {
  const schema = useModel(start, start => start.schema);
  const { error } = model;
  if (!error || isAtField(model, schema)) {
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
