import React, { useId } from 'react';

import { labelOf } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import { obstacles } from '../../model/gpuUse';
import type { IReading } from '../../model/reading';
import { serverTime } from '../../model/serverTime';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { formatBytes, formatMoment } from '../../words/format';
import {
  sayLeaseholder,
  sayLessees,
  sayUserShortly
} from '../../words/gpuWords';
import type { IKnownPools } from '../../words/gpuWords';
import type { IWidgetProps } from './fields';

interface IGpuChipProps extends IWidgetProps {
  gpu: IGpu;
  isPicked: boolean;
  onPick: (isPicked: boolean) => void;
}

/** A GPU that can be picked, with what is free of it; or who has it. */
export function GpuChip(props: IGpuChipProps): JSX.Element {
  const { gpu, isPicked, onPick, model, current, draft, aria } = props;
  const own = useModel(current, ({ pool }) => pool);
  const pools = useModel(model, ({ pools }) => pools);
  const known = { pools, own };
  const id = useId();
  const reading = useModel(model.telemetry, telemetry =>
    telemetry.gpu(gpu.uuid)
  );
  const kernel = useModel(
    current,
    ({ notebook }) => notebook?.kernelId ?? null
  );
  const { lease, values } = reading;
  const isShared = lease?.shared === true && draft.oversubscribe === true;
  const users = lease ? [] : obstacles(reading, kernel);
  const isUnseen = lease === null && reading.use?.unseen === true;
  const isClosed = reading.closed?.now === true;
  const isTaken =
    (lease !== null && !isShared) || users.length > 0 || isUnseen || isClosed;
  const load = values.utilization;
  return (
    <label
      className={isTaken ? 'jp-dist-Chip jp-mod-taken' : 'jp-dist-Chip'}
      title={explain(reading, known, props)}
    >
      <input
        type="checkbox"
        aria-label={trans.__('GPU %1', labelOf(gpu))}
        aria-describedby={`${id} ${aria['aria-describedby']}`}
        checked={isPicked}
        // What is picked can be given up, whoever has it by now.
        disabled={isTaken && !isPicked}
        onChange={({ target }) => onPick(target.checked)}
      />
      <span className="jp-dist-Chip-name">
        {trans.__('GPU %1', labelOf(gpu))}
      </span>
      {typeof load === 'number' && (
        <span className="jp-dist-Chip-load">
          {trans.__('%1 %', Math.round(load))}
        </span>
      )}
      <span id={id} className="jp-dist-Chip-free">
        {lease && !isShared
          ? sayLessees(lease, known)
          : users.length
            ? sayUserShortly(users[0])
            : isUnseen
              ? trans.__('in use')
              : isClosed
                ? trans.__('closed')
                : sayFree(gpu, reading)}
      </span>
    </label>
  );
}

function sayFree({ memory_total }: IGpu, { values }: IReading): string {
  const used = values.memory_used;
  return typeof used === 'number' && memory_total > 0
    ? trans.__('%1 free', formatBytes(Math.max(0, memory_total - used)))
    : trans.__('free memory unknown');
}

/** `leased to bob, train.ipynb`, since when; or whose processes are there. */
function explain(
  reading: IReading,
  known: IKnownPools,
  { gpu }: IGpuChipProps
): string {
  const since = reading.lease?.since;
  return [
    gpu.name,
    sayLeaseholder(reading, [], known),
    since && trans.__('Since %1', formatMoment(since, serverTime()))
  ]
    .filter(Boolean)
    .join('\n');
}
