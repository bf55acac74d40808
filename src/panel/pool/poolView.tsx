import React from 'react';

import { useNow } from '../../ui/clock';
import { ConnectionNote, hasNothingToShow } from '../connectionNote';
import { ErrorNote } from './errorNote';
import { FailedPool } from './failedPool';
import { formatBackend, formatDuration } from '../../words/format';
import { LivePool } from './livePool';
import type { IPool } from '../../model/contract';
import type { IPanelServices } from '../services';
import { StartForm } from '../start/form';
import { countRanks } from '../../words/poolState';

/**
 * The pool of the current notebook, in whatever state it is.
 */
export function PoolView(services: IPanelServices): JSX.Element {
  return (
    <div className="jp-dist-Body">
      <ConnectionNote {...services} />
      {!hasNothingToShow(services.model) && (
        <>
          <Content {...services} />
          <ErrorNote {...services} />
        </>
      )}
    </div>
  );
}

function Content(services: IPanelServices): JSX.Element {
  const { model, trans } = services;
  const { notebook, pool } = model;
  if (!notebook) {
    return (
      <p className="jp-dist-quiet">
        {trans.__('Open a notebook to start ranks for it.')}
      </p>
    );
  }
  if (!notebook.kernelId) {
    return (
      <p className="jp-dist-quiet">
        {trans.__('This notebook has no kernel: start one to run ranks.')}
      </p>
    );
  }
  if (!notebook.isPython && !pool) {
    return (
      <p className="jp-dist-quiet">
        {trans.__(
          'Ranks need a Python kernel. Choose a Python kernel for this notebook.'
        )}
      </p>
    );
  }
  switch (pool?.state) {
    case 'PENDING':
    case 'CONFIGURING':
    case 'RUNNING':
    case 'COMPLETING':
      return <LivePool {...services} pool={pool} key={pool.id} />;
    case 'FAILED':
      return <FailedPool {...services} pool={pool} key={pool.id} />;
    default:
      return (
        <>
          <p className="jp-dist-quiet" role="status">
            {pool
              ? sayEnded(pool, services)
              : trans.__('No ranks run for this notebook.')}
          </p>
          <StartForm
            {...services}
            key={notebook.kernelId}
            ranks={pool?.world_size}
            label={trans.__('Start')}
          />
        </>
      );
  }
}

function sayEnded(pool: IPool, { trans }: IPanelServices): string {
  if (pool.reason) {
    return pool.reason.message;
  }
  return pool.state === 'CANCELLED'
    ? trans.__('The start was cancelled.')
    : trans._n('%1 rank stopped.', '%1 ranks stopped.', pool.world_size);
}

/**
 * What stands beside the section's title: `4 ranks · gloo · 12 min`.
 */
export function PoolSummary(services: IPanelServices): JSX.Element | null {
  const { pool } = services.model;
  if (!pool || pool.state !== 'RUNNING' || hasNothingToShow(services.model)) {
    return null;
  }
  return <RunningSummary {...services} pool={pool} />;
}

function RunningSummary(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, clock, trans } = props;
  const uptime = useNow(clock) - (pool.started ?? pool.created);
  return (
    <>
      {[
        countRanks(pool.world_size, trans),
        formatBackend(pool.backend),
        formatDuration(uptime, trans)
      ].join(' · ')}
    </>
  );
}
