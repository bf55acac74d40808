import React from 'react';

import type { IGpuRef, IRank } from '../../model/contract';
import type { IUsage } from '../../model/gpuContract';
import { trans } from '../../model/trans';
import { Bar, Percent } from '../../ui/meters';
import { Sparkline } from '../../ui/sparkline';
import { useModel } from '../../ui/useModel';
import { formatBytes, namePid } from '../../words/format';
import type { IRankProps } from './rankTile';

/** The load of a rank's GPU, which is somebody else's while it is parked, or of its process on the CPU. */
export function RankLoad(props: IRankProps): JSX.Element | null {
  const { poolId, rank, phase, span, telemetry } = props;
  const curve = useModel(
    telemetry,
    telemetry => telemetry.rank(poolId, rank.rank).curve
  );
  const gpu = gpuOf(rank);
  const load = useModel(telemetry, () => loadOf(props));
  if (gpu && phase === 'parked') {
    return null;
  }
  return (
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
  );
}

/** A rank's memory and process; the child is the menu's button. */
export function RankUse(
  props: IRankProps & { children: React.ReactNode }
): JSX.Element {
  const { poolId, rank, phase, telemetry, children } = props;
  const usage = useModel(
    telemetry,
    telemetry => telemetry.rank(poolId, rank.rank).usage
  );
  return (
    <div className="jp-dist-RankTile-use jp-dist-quiet">
      <span>
        {usage && <Memory rank={rank} phase={phase} usage={usage} />}
        {rank.pid !== null && <span>{namePid(rank.pid)}</span>}
      </span>
      {children}
    </div>
  );
}

/** With a torch that has no CUDA, a rank keeps the id of its GPU but computes on the CPU. */
export function gpuOf({ gpu, device }: IRank): IGpuRef | null {
  return device === 'cpu' ? null : gpu;
}

/** Percent of its GPU, or of one core; null if it is unknown, or the GPU's load is not its own. */
export function loadOf(props: IRankProps): number | null {
  const { poolId, rank, phase, telemetry } = props;
  const gpu = gpuOf(rank);
  if (gpu && phase === 'parked') {
    return null;
  }
  const load = gpu
    ? telemetry.gpu(gpu.uuid).values.utilization
    : telemetry.rank(poolId, rank.rank).usage?.cpu;
  return load ?? null;
}

interface IMemoryProps extends Pick<IRankProps, 'rank' | 'phase'> {
  usage: IUsage;
}

/** What torch has allocated on the GPU; on the CPU, the memory of the process. */
function Memory({ rank, phase, usage }: IMemoryProps): JSX.Element | null {
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
    <span
      title={
        phase === 'parked'
          ? trans.__('%1, kept in the memory of this machine', used)
          : trans.__('%1 allocated, %2 reserved by PyTorch', used, held)
      }
    >
      {used}
    </span>
  );
}
