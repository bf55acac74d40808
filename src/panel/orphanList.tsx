import { PathExt } from '@jupyterlab/coreutils';
import React from 'react';

import { LivePool } from './livePool';
import type { IPanelServices } from './services';

/**
 * The pools whose kernel is gone: no notebook would show them, and they keep their GPUs.
 */
export function OrphanList(services: IPanelServices): JSX.Element {
  const { model, trans } = services;
  return (
    <>
      {model.orphans.map(pool => {
        const name = PathExt.basename(pool.name) || pool.id;
        const title = trans.__('Pool of %1', name);
        return (
          <div
            key={pool.id}
            className="jp-dist-Orphan"
            role="group"
            aria-label={title}
          >
            <h4 title={pool.name}>{title}</h4>
            <LivePool {...services} pool={pool} />
          </div>
        );
      })}
    </>
  );
}
