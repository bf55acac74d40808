import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IGpuRef, IRank } from '../../model/contract';
import type { IUsage } from '../../model/gpuContract';
import type { ITelemetry } from '../../model/telemetry';
import { Meter } from '../../ui/meters';
import { useModel } from '../../ui/useModel';
import { formatBytes, namePid } from '../../words/format';

interface IRankUseProps {
  poolId: string;
  rank: IRank;
  telemetry: ITelemetry;
  trans: TranslationBundle;
}

/**
 * How busy a rank's GPU is, or the CPU with it, and what memory it has.
 */
export function RankUse(props: IRankUseProps): JSX.Element {
  const { poolId, rank, telemetry, trans } = props;
  const { usage } = useModel(telemetry, telemetry =>
    telemetry.rank(poolId, rank.rank)
  );
  const gpu = gpuOf(rank);
  const load = useModel(telemetry, telemetry =>
    gpu ? telemetry.gpu(gpu.uuid).values.utilization : usage?.cpu
  );
  return (
    <>
      <Meter
        label={
          gpu
            ? trans.__('Utilization of the GPU of rank %1', rank.rank)
            : trans.__('CPU use of rank %1', rank.rank)
        }
        value={load ?? null}
        rank={rank.rank}
      />
      <div className="jp-dist-RankTile-use jp-dist-quiet">
        {usage && <Memory rank={rank} usage={usage} trans={trans} />}
        {rank.pid !== null && <span>{namePid(rank.pid)}</span>}
      </div>
    </>
  );
}

/** With a torch that has no CUDA, a rank keeps the id of its GPU but computes on the CPU. */
export function gpuOf({ gpu, device }: IRank): IGpuRef | null {
  return device === 'cpu' ? null : gpu;
}

interface IMemoryProps {
  rank: IRank;
  usage: IUsage;
  trans: TranslationBundle;
}

/** What torch has on the GPU; on the CPU, what the process has. */
function Memory({ rank, usage, trans }: IMemoryProps): JSX.Element | null {
  const { memory, allocated, reserved } = usage;
  if (!gpuOf(rank)) {
    return memory === null ? null : (
      <span title={trans.__('Memory of the process')}>
        {formatBytes(memory, trans)}
      </span>
    );
  }
  if (allocated === null) {
    return null;
  }
  const used = formatBytes(allocated, trans);
  const held = formatBytes(reserved ?? allocated, trans);
  return (
    <span title={trans.__('%1 allocated, %2 reserved by PyTorch', used, held)}>
      {trans.__('%1 allocated', used)}
    </span>
  );
}
