import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { hasRanks } from '../../model/contract';
import type { IApiError, IPool } from '../../model/contract';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import { ErrorText, Note, StatePill } from '../../ui/controls';
import { useFocusHandOff } from '../../ui/useFocusHandOff';
import { useInSight } from '../../ui/useInSight';
import { useModel } from '../../ui/useModel';
import { formatBackend, formatDuration, joinFacts } from '../../words/format';
import { partsOf } from '../../words/lineWords';
import { countRanks } from '../../words/poolWords';
import { ConnectionNote, hasNothingToShow } from '../connectionNote';
import type { IPanelServices } from '../services';
import { isErrorAtField, StartForm } from '../start/form';
import { AgentCalls } from './agentCalls';
import { LastLines } from './deadRanks';
import { LivePool } from './livePool';
import { Offers } from './offers';

/** The pool of the current notebook, in whatever state it is. */
export function PoolView(services: IPanelServices): JSX.Element {
  // What goes, or is disabled, goes with these.
  const pool = useModel(services.current, ({ pool }) => pool);
  useModel(services.current, ({ error }) => error);
  // Above the tiles of ranks, but below the form, whose buttons it is about.
  const isThere = pool !== null && hasRanks(pool);
  return (
    <div ref={useFocusHandOff()} className="jp-dist-Contents">
      <ConnectionNote {...services} />
      {!useModel(services.model, hasNothingToShow) && (
        <>
          {isThere && <ErrorNote {...services} />}
          <Content {...services} />
          {!isThere && <ErrorNote {...services} />}
          <AgentCalls {...services} />
        </>
      )}
    </div>
  );
}

function Content(services: IPanelServices): JSX.Element {
  const { commands, current } = services;
  const notebook = useModel(current, ({ notebook }) => notebook);
  const pool = useModel(current, ({ pool }) => pool);
  if (!notebook) {
    return (
      <p className="jp-dist-quiet">
        {trans.__('Open a notebook to start ranks for it.')}
      </p>
    );
  }
  if (!notebook.kernelId) {
    return (
      <>
        <p className="jp-dist-quiet">
          {trans.__('This notebook has no kernel: start one to run ranks.')}
        </p>
        <div className="jp-dist-Actions">
          <Button
            small
            onClick={() => void commands.execute('notebook:change-kernel')}
          >
            {trans.__('Start kernel…')}
          </Button>
        </div>
      </>
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
    case 'SUSPENDED':
    case 'COMPLETING':
      return <LivePool {...services} pool={pool} key={pool.id} />;
    case 'FAILED':
      return <FailedPool {...services} pool={pool} key={pool.id} />;
    default:
      return (
        <>
          <p className="jp-dist-quiet" role="status">
            {pool
              ? sayEnded(pool)
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

function sayEnded(pool: IPool): string {
  if (pool.reason) {
    return pool.reason.message;
  }
  return pool.state === 'CANCELLED'
    ? trans.__('The start was cancelled.')
    : trans._n('%1 rank stopped.', '%1 ranks stopped.', pool.world_size);
}

/** What stands beside the section's title: `4 ranks · gloo · 12 min`. */
export function PoolSummary(services: IPanelServices): JSX.Element | null {
  const pool = useModel(services.current, ({ pool }) => pool);
  return pool && hasRanks(pool) ? (
    <RunningSummary {...services} pool={pool} />
  ) : null;
}

function RunningSummary(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool, clock } = props;
  const uptime = useNow(clock) - (pool.started ?? pool.created);
  return (
    <>
      {joinFacts([
        countRanks(pool.world_size),
        formatBackend(pool.backend),
        formatDuration(uptime)
      ])}
    </>
  );
}

/** A pool that failed: why, what to do about it, and another try. */
function FailedPool(props: IPanelServices & { pool: IPool }): JSX.Element {
  const { pool } = props;
  const reason = pool.reason;
  const log = reason?.stderr.join('\n') ?? '';
  return (
    <>
      <div className="jp-dist-StateLine">
        <StatePill kind="error" label={trans.__('Failed')} />
      </div>
      {reason && (
        <div className="jp-dist-Reason" role="alert">
          <ErrorText error={reason} />
        </div>
      )}
      {log && <LastLines log={log} />}
      <StartForm
        {...props}
        ranks={pool.world_size}
        label={trans.__('Start again')}
      />
    </>
  );
}

/** Why the last request failed, until it is dismissed or another one is sent. */
function ErrorNote(services: IPanelServices): JSX.Element | null {
  const { current, start } = services;
  const schema = useModel(start, start => start.schema);
  const error = useModel(current, ({ error }) => error);
  const isAtField = useModel(current, ({ pool, error }) =>
    isErrorAtField(pool, error, schema)
  );
  const note = useInSight<HTMLDivElement>(error);
  if (!error || isAtField) {
    return null;
  }
  return (
    <Note kind="error" ref={note}>
      <Refusal error={error} />
      {/* It names the options of the magics; these are the buttons. */}
      {error.hint && !error.offers?.length && <p>{error.hint}</p>}
      <div className="jp-dist-Offers">
        <Offers {...services} error={error} />
        <Button small onClick={() => current.dismissError()}>
          {trans.__('Dismiss')}
        </Button>
      </div>
    </Note>
  );
}

/** What was refused in short, and who has which GPUs, a line each. */
function Refusal({ error }: { error: IApiError }): JSX.Element {
  const { head, parts } = partsOf(error);
  return (
    <>
      <p className="jp-dist-error">{head}</p>
      {parts.length > 0 && (
        <ul className="jp-dist-Parts">
          {parts.map(part => (
            <li key={part}>{part}</li>
          ))}
        </ul>
      )}
    </>
  );
}
