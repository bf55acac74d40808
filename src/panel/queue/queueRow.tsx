import React from 'react';

import { labelOf } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import { isHeld, isOwnJob } from '../../model/queueContract';
import type { IQueueRow } from '../../model/queueContract';
import { useNow } from '../../ui/clock';
import { useModel } from '../../ui/useModel';
import { formatRanks } from '../../words/format';
import {
  explainRow,
  nameRow,
  sayGpus,
  sayRow,
  sayWhen
} from '../../words/queueWords';
import type { IPanelServices } from '../services';
import type { DragProps } from './dragging';
import { RowFrame } from './rowFrame';
import type { ISelection } from './selection';

interface IQueueRowProps extends IPanelServices {
  row: IQueueRow;
  /** In line, from 1. */
  place: number | undefined;
  selection: ISelection;
  drag?: DragProps;
}

/** A job or a pool that runs or waits; those of other users and servers are grey. */
export function QueueRow(props: IQueueRowProps): JSX.Element {
  const { row, place, model } = props;
  const isOwnPool = useModel(model, ({ pools }) => pools.has(row.id));
  const gpus = useModel(model, ({ gpus }) => gpus);
  const isPool = row.kind === 'pool' && isOwnPool;
  return (
    <RowFrame
      {...props}
      name={nameRow(row, isPool)}
      place={sayGpus(row, listGpus(row, gpus?.gpus ?? []))}
      mood={row.state !== 'PENDING' ? 'run' : isHeld(row) ? 'held' : 'wait'}
      title={explainRow(row, place)}
      job={isOwnJob(row) ? row.id : undefined}
      pool={isPool ? row.id : undefined}
    >
      <RowWords {...props} />
    </RowFrame>
  );
}

function RowWords({ row, place, clock }: IQueueRowProps): JSX.Element {
  const now = useNow(clock);
  const when = sayWhen(row, place, now);
  return (
    <>
      <span>{sayRow(row, now)}</span>
      {when && <span className="jp-dist-quiet">{when}</span>}
    </>
  );
}

/** `0–3`; null while it has none, or they are not known. */
function listGpus(
  { gpu_uuids }: IQueueRow,
  gpus: readonly IGpu[]
): string | null {
  const found = gpus.filter(({ uuid }) => gpu_uuids.includes(uuid));
  if (!found.length || found.length < gpu_uuids.length) {
    return null;
  }
  return found.some(({ mig }) => mig)
    ? found.map(labelOf).join(', ')
    : formatRanks(found.map(({ index }) => index));
}
