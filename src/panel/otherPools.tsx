import React from 'react';

import { OrphanList } from './orphanList';
import type { IPanelServices } from './services';

/**
 * The pools of other notebooks.
 */
export function OtherPools(services: IPanelServices): JSX.Element {
  return (
    <div className="jp-dist-Body">
      <OrphanList {...services} />
    </div>
  );
}

/**
 * What stands beside the section's title: `1 orphaned`.
 */
export function OtherPoolsSummary({
  model,
  trans
}: IPanelServices): JSX.Element {
  const { length } = model.orphans;
  return <>{length > 0 && trans.__('%1 orphaned', length)}</>;
}
