import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import type { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { CopyButton, ErrorText, Note } from '../ui/controls';
import { useModel } from '../ui/useModel';
import { formatMoment } from '../words/format';
import type { IPanelServices } from './services';

const ENABLE_COMMAND = 'jupyter server extension enable jupyter_dist_server';

/** Whether the server has sent nothing worth showing. */
export function hasNothingToShow({
  connection: { state },
  isKnown
}: IPoolsModel): boolean {
  return !isKnown || state === 'missing' || state === 'refused';
}

export type Part = (services: IPanelServices) => JSX.Element | null;

/** Shows nothing until the server has sent something; the first section says why. */
export function whenKnown(Part: Part): Part {
  return function WhenKnown(services) {
    return useModel(services.model, hasNothingToShow) ? null : (
      <Part {...services} />
    );
  };
}

/** Whether the shown state may be out of date. */
export function isStale({ connection }: IPoolsModel): boolean {
  return connection.state === 'stale';
}

/** What is wrong with the connection to the server, if anything. */
export function ConnectionNote({ model }: IPanelServices): JSX.Element | null {
  const connection = useModel(model, ({ connection }) => connection);
  const isKnown = useModel(model, ({ isKnown }) => isKnown);
  const retry = (
    <Button small onClick={() => model.reconnect()}>
      {trans.__('Check again')}
    </Button>
  );
  switch (connection.state) {
    case 'live':
      return null;
    case 'connecting':
      return (
        <p className="jp-dist-quiet" role="status">
          {trans.__('Connecting…')}
        </p>
      );
    case 'stale':
      return (
        <Note kind="warn">
          {isKnown
            ? trans.__(
                'Disconnected since %1. Reconnecting…',
                formatMoment(connection.since / 1000)
              )
            : trans.__(
                'No connection to the server yet. Retrying… If this persists, check that any proxy between browser and server forwards WebSockets.'
              )}
        </Note>
      );
    case 'refused':
      return (
        <Note kind="error">
          <ErrorText error={connection.error} />
          {retry}
        </Note>
      );
    case 'missing':
      return (
        <div role="status">
          <p>{trans.__('The server extension is not enabled.')}</p>
          <p className="jp-dist-quiet">
            {trans.__(
              'Run this where the Jupyter server runs, then restart the server:'
            )}
          </p>
          <pre className="jp-dist-Log">{ENABLE_COMMAND}</pre>
          <div className="jp-dist-Actions">
            <CopyButton text={ENABLE_COMMAND} />
            {retry}
          </div>
        </div>
      );
  }
}
