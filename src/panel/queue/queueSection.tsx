import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import type { IQueueModel } from '../../model/queue';
import { isOwnJob, placesInLine } from '../../model/queueContract';
import type { IQueueRow } from '../../model/queueContract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ErrorText, ErrorWithRetry, Note, ShowMore } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { joinFacts } from '../../words/format';
import { isStale } from '../connectionNote';
import type { IPanelServices } from '../services';
import { useDragging } from './dragging';
import { EndedJobs } from './endedJobs';
import { QueueRow } from './queueRow';
import { useSelection } from './selection';

/** Rows that are shown at once. */
const MANY = 50;

/** What runs and waits on this machine, and own jobs that have ended. */
export function QueueSection(services: IPanelServices): JSX.Element {
  const { model } = services;
  const { queue } = model;
  const rows = useModel(queue, ({ rows }) => rows);
  const ended = useModel(queue, ({ ended }) => ended) ?? [];
  const notices = useModel(queue, ({ notices }) => notices);
  const error = useModel(queue, ({ error }) => error);
  const isLost = useModel(model, isStale);
  const selection = useSelection(rows);
  // While the connection is lost, the panel says so at its top.
  if (error && !isLost) {
    return <ErrorWithRetry error={error} retry={() => queue.reload()} />;
  }
  if (!rows) {
    return (
      <p className="jp-dist-quiet jp-dist-loading" role="status">
        {trans.__('Reading the queue…')}
      </p>
    );
  }
  return (
    <div
      className="jp-dist-Contents"
      onKeyDown={event => event.key === 'Escape' && selection.clear()}
    >
      <ActionError {...services} />
      {notices.map(notice => (
        <Note key={notice} kind="warn">
          {notice}
        </Note>
      ))}
      {rows.length > 0 && (
        <QueueList {...services} rows={rows} selection={selection} />
      )}
      {!rows.some(isOwnJob) && !ended.length && (
        <p>
          {trans.__(
            'A job is a command, a script or a notebook that starts as soon as its GPUs are free, and goes on when you close JupyterLab.'
          )}
        </p>
      )}
      {ended.length > 0 && (
        <EndedJobs {...services} jobs={ended} selection={selection} />
      )}
      <div className="jp-dist-Actions">
        <Button
          small
          onClick={() => void services.commands.execute(CommandIDs.submitJob)}
        >
          {trans.__('Submit a job…')}
        </Button>
      </div>
    </div>
  );
}

interface IQueueListProps extends IPanelServices {
  rows: readonly IQueueRow[];
  selection: ReturnType<typeof useSelection>;
}

function QueueList(props: IQueueListProps): JSX.Element {
  const { rows, model } = props;
  const [isUnfolded, setUnfolded] = useState(false);
  const isLost = useModel(model, isStale);
  const places = placesInLine(rows);
  const dragOf = useDragging(model.queue);
  const shown = isUnfolded ? rows : rows.slice(0, MANY);
  return (
    <>
      <ul
        className={isLost ? 'jp-dist-Cards jp-mod-stale' : 'jp-dist-Cards'}
        aria-label={trans.__('Running and waiting')}
      >
        {shown.map(row => (
          <QueueRow
            key={`${row.kind} ${row.user} ${row.id || row.gpu_uuids}`}
            {...props}
            row={row}
            place={places.get(row)}
            drag={dragOf(row)}
          />
        ))}
      </ul>
      <ShowMore
        count={rows.length - shown.length}
        show={() => setUnfolded(true)}
      />
    </>
  );
}

/** Why the last action failed, until it is dismissed or another one is sent. */
function ActionError({ model }: IPanelServices): JSX.Element | null {
  const error = useModel(model.queue, ({ actionError }) => actionError);
  if (!error) {
    return null;
  }
  return (
    <Note kind="error">
      <ErrorText error={error} />
      <Button small onClick={() => model.queue.dismissError()}>
        {trans.__('Dismiss')}
      </Button>
    </Note>
  );
}

/** What stands beside the section's title: `1 running · 2 waiting`, of own and others' jobs. */
export function QueueSummary({ model }: IPanelServices): JSX.Element | null {
  const running = useModel(model.queue, countRunning);
  const waiting = useModel(model.queue, countWaiting);
  if (!running && !waiting) {
    return null;
  }
  return (
    <>
      {joinFacts([
        running > 0 && trans._n('%1 running', '%1 running', running),
        waiting > 0 && trans._n('%1 waiting', '%1 waiting', waiting)
      ])}
    </>
  );
}

function countRunning({ rows }: IQueueModel): number {
  const runs = ({ kind, state }: IQueueRow) =>
    kind === 'batch' && state !== 'PENDING';
  return rows?.filter(runs).length ?? 0;
}

function countWaiting({ rows }: IQueueModel): number {
  const waits = ({ kind, state }: IQueueRow) =>
    kind !== 'reservation' && state === 'PENDING';
  return rows?.filter(waits).length ?? 0;
}
