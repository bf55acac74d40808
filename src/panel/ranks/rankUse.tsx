import React from 'react';

import type { IGpuRef, IRank } from '../../model/contract';
import type { IUsage } from '../../model/gpuContract';
import type { ITelemetry } from '../../model/telemetry';
import { trans } from '../../model/trans';
import { Bar, Percent } from '../../ui/meters';
import { Sparkline } from '../../ui/sparkline';
import { useModel } from '../../ui/useModel';
import { formatBytes, namePid } from '../../words/format';

interface IRankUseProps {
  poolId: string;
  rank: IRank;
  /** Seconds that a curve reaches back. */
  span: number;
  telemetry: ITelemetry;
  /** The button of the menu. */
  children: React.ReactNode;
}

/** How busy a rank's GPU is, or the CPU with it, and what memory it has. */
export function RankUse(props: IRankUseProps): JSX.Element {
  const { poolId, rank, span, telemetry, children } = props;
  const { usage, curve } = useModel(telemetry, telemetry =>
    telemetry.rank(poolId, rank.rank)
  );
  const gpu = gpuOf(rank);
  const load =
    useModel(telemetry, telemetry =>
      gpu ? telemetry.gpu(gpu.uuid).values.utilization : usage?.cpu
    ) ?? null;
  return (
    <>
      <div className="jp-dist-RankTile-load">
        {gpu ? (
          <Bar value={load} rank={rank.rank} />
        ) : (
          <Sparkline
            label={trans.__('CPU use of rank %1 until now', rank.rank)}
            curve={curve}
            span={span}
            rank={rank.rank}
          />
        )}
        <Percent
          label={
            gpu
              ? trans.__('Utilization of the GPU of rank %1', rank.rank)
              : trans.__('CPU use of rank %1', rank.rank)
          }
          title={
            gpu
              ? trans.__('Share of time a CUDA kernel was running')
              : trans.__('100 % is one core')
          }
          value={load}
        >
          {load !== null && trans.__('%1 %', Math.round(load))}
        </Percent>
      </div>
      <div className="jp-dist-RankTile-use jp-dist-quiet">
        <span>
          {usage && <Memory rank={rank} usage={usage} />}
          {rank.pid !== null && <span>{namePid(rank.pid)}</span>}
        </span>
        {children}
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
}

/** What torch has on the GPU; on the CPU, what the process has. */
function Memory({ rank, usage }: IMemoryProps): JSX.Element | null {
  const { memory, allocated, reserved } = usage;
  if (!gpuOf(rank)) {
    return memory === null ? null : (
      <span
        title={trans.__(
          'Memory of the process; pages that ranks share count once'
        )}
      >
        {formatBytes(memory)}
      </span>
    );
  }
  if (allocated === null) {
    return null;
  }
  const used = formatBytes(allocated);
  const held = formatBytes(reserved ?? allocated);
  return (
    <span title={trans.__('%1 allocated, %2 reserved by PyTorch', used, held)}>
      {used}
    </span>
  );
}
