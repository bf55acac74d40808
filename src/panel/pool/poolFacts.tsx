import React from 'react';

import type { IPool } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts } from '../../words/format';
import { sayNodes } from '../../words/nodeWords';
import { sayPlacement } from '../../words/poolState';
import { gpuOf } from '../ranks/rankUse';
import type { IPanelServices } from '../services';

/**
 * How the ranks were placed, and what memory they have together: `Placement: in order · 124 GiB allocated`.
 */
export function PoolFacts(
  props: IPanelServices & { pool: IPool }
): JSX.Element {
  const { pool, model } = props;
  const isOnGpus = pool.ranks.some(rank => gpuOf(rank) !== null);
  const size = useModel(model.telemetry, telemetry => {
    const memory = memoryOf(pool, isOnGpus, telemetry);
    return memory ? formatBytes(memory) : '';
  });
  return (
    <p className="jp-dist-PoolFacts jp-dist-quiet">
      {joinFacts([
        sayNodes(pool),
        isOnGpus ? sayPlacement(pool.placement) : trans.__('on the CPU'),
        size &&
          (isOnGpus
            ? trans.__('%1 allocated', size)
            : trans.__('%1 of memory', size))
      ])}
    </p>
  );
}

/** Bytes, as far as the ranks have said. */
function memoryOf(
  pool: IPool,
  isOnGpus: boolean,
  telemetry: ITelemetry
): number {
  return pool.ranks
    .map(({ rank }) => telemetry.rank(pool.id, rank).usage)
    .map(usage => (isOnGpus ? usage?.allocated : usage?.memory) ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);
}
