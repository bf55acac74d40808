import React from 'react';

import { bareName } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import { GpuCard } from './gpuCard';
import type { IPanelServices } from '../services';

interface IMigCardProps extends IPanelServices {
  instances: [IGpu, ...IGpu[]];
}

/**
 * A GPU that is divided, and its MIG instances.
 */
export function MigCard(props: IMigCardProps): JSX.Element {
  const { instances, trans } = props;
  const [{ index, name, parent }] = instances;
  const label = trans.__('GPU %1', index);
  return (
    <li className="jp-dist-MigCard" aria-label={label}>
      <div className="jp-dist-GpuCard-head">
        <strong title={parent ?? undefined}>{label}</strong>
        <span className="jp-dist-quiet">{bareName(name)}</span>
        <span className="jp-dist-quiet jp-dist-MigCard-count">
          {trans._n('%1 MIG instance', '%1 MIG instances', instances.length)}
        </span>
      </div>
      <ul aria-label={trans.__('MIG instances of %1', label)}>
        {instances.map(gpu => (
          <GpuCard key={gpu.uuid} {...props} gpu={gpu} />
        ))}
      </ul>
    </li>
  );
}
