import React from 'react';

import type { IPool } from '../../model/contract';
import { foreignLeases } from '../../model/leases';
import type { IForeignLease } from '../../model/leases';
import { hasNothingToShow } from '../connectionNote';
import { LeaseList } from './leaseList';
import { OtherPool } from './otherPool';
import type { IPanelServices } from '../services';
import { useTelemetry } from '../../ui/useTelemetry';

/**
 * What else holds GPUs of this machine: the pools of other notebooks, those that have lost theirs, and
 * the leases of other servers and users.
 */
export function OtherPools(services: IPanelServices): JSX.Element {
  const { model, trans } = services;
  const pools = otherPools(services);
  const leases = useForeignLeases(services);
  if (hasNothingToShow(model)) {
    return <div className="jp-dist-Body" />;
  }
  return (
    <div className="jp-dist-Body">
      {pools.length > 0 && (
        <ul
          className="jp-dist-Cards"
          aria-label={trans.__('Pools of other notebooks')}
        >
          {pools.map(pool => (
            <OtherPool key={pool.id} {...services} pool={pool} />
          ))}
        </ul>
      )}
      {leases.length > 0 && <LeaseList {...services} leases={leases} />}
      {!pools.length && !leases.length && (
        <p className="jp-dist-quiet">
          {trans.__('No other pool runs on this machine.')}
        </p>
      )}
    </div>
  );
}

/**
 * What stands beside the section's title: `2`, or `3 · 1 orphaned`.
 */
export function OtherPoolsSummary(
  services: IPanelServices
): JSX.Element | null {
  const { model, trans } = services;
  const count = otherPools(services).length + useForeignLeases(services).length;
  if (!count || hasNothingToShow(model)) {
    return null;
  }
  const orphaned = model.orphans.length;
  const words = trans._n('%1 orphaned', '%1 orphaned', orphaned);
  return (
    <>{orphaned ? (orphaned < count ? `${count} · ${words}` : words) : count}</>
  );
}

/** Those without a kernel first: something is to be done about them. */
function otherPools({ model }: IPanelServices): IPool[] {
  return [...model.pools.values()]
    .filter(pool => pool.ended === null && pool !== model.pool)
    .sort(
      (a, b) =>
        Number(b.orphaned !== null) - Number(a.orphaned !== null) ||
        a.created - b.created
    );
}

function useForeignLeases({ model }: IPanelServices): IForeignLease[] {
  const { telemetry, pools, gpus } = model;
  // As text they are the same until one of them changes, which no sample does.
  const leases = useTelemetry(telemetry, telemetry =>
    JSON.stringify(foreignLeases(gpus?.gpus ?? [], pools, telemetry))
  );
  return JSON.parse(leases) as IForeignLease[];
}
