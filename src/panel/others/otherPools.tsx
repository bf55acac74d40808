import { PathExt } from '@jupyterlab/coreutils';
import React from 'react';

import type { IPool } from '../../model/contract';
import { foreignLeases } from '../../model/leases';
import type { IForeignLease } from '../../model/leases';
import { gpusOfJobs } from '../../model/queueContract';
import { serverTime } from '../../model/serverTime';
import { trans } from '../../model/trans';
import { isSame, useModel } from '../../ui/useModel';
import { formatMoment, joinFacts, namePid } from '../../words/format';
import type { IPanelServices } from '../services';
import { OtherPool } from './otherPool';

/**
 * What else holds GPUs of this machine: the pools of other notebooks, those that have lost theirs, and
 * the leases of other servers and users.
 */
export function OtherPools(services: IPanelServices): JSX.Element {
  const pools = useOtherPools(services);
  const leases = useForeignLeases(services);
  return (
    <>
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
      {leases.length > 0 && <LeaseList leases={leases} />}
      {!pools.length && !leases.length && (
        <p className="jp-dist-quiet">
          {trans.__('No other pool runs on this machine.')}
        </p>
      )}
    </>
  );
}

/** What stands beside the section's title: `2`, or `3 · 1 orphaned`. */
export function OtherPoolsSummary(
  services: IPanelServices
): JSX.Element | null {
  const pools = useOtherPools(services);
  const count = pools.length + useForeignLeases(services).length;
  if (!count) {
    return null;
  }
  const orphaned = pools.filter(pool => pool.orphaned !== null).length;
  const words = trans._n('%1 orphaned', '%1 orphaned', orphaned);
  return (
    <>{orphaned ? joinFacts([orphaned < count && `${count}`, words]) : count}</>
  );
}

/** Pools without a kernel come first: they need attention. */
function useOtherPools({ model, current }: IPanelServices): readonly IPool[] {
  const own = useModel(current, ({ pool }) => pool?.id);
  return useModel(
    model,
    ({ pools }) =>
      [...pools.values()]
        .filter(({ id, ended }) => ended === null && id !== own)
        .sort(
          (a, b) =>
            Number(b.orphaned !== null) - Number(a.orphaned !== null) ||
            a.created - b.created
        ),
    areSame
  );
}

function areSame(one: readonly IPool[], other: readonly IPool[]): boolean {
  return (
    one.length === other.length &&
    one.every((pool, index) => pool === other[index])
  );
}

function useForeignLeases({ model }: IPanelServices): IForeignLease[] {
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  // A lease may be that of a pool that we are told of later.
  useModel(model, ({ pools }) => [...pools.keys()].join(' '));
  const ofJobs = useModel(model.queue, ({ rows }) => gpusOfJobs(rows), isSame);
  return useModel(
    model.telemetry,
    telemetry => foreignLeases(gpus, model.pools, telemetry, ofJobs),
    isSame
  );
}

/** GPUs leased by other servers and users; this server cannot release them. */
function LeaseList({ leases }: { leases: IForeignLease[] }): JSX.Element {
  return (
    <ul
      className="jp-dist-Cards"
      aria-label={trans.__('Leases of other servers and users')}
    >
      {leases.map(({ user, pid, since, notebook, shared, gpus }) => {
        const name =
          PathExt.basename(notebook) || (pid === null ? '' : namePid(pid));
        return (
          <li key={`${user} ${pid} ${gpus}`} className="jp-dist-OtherPool">
            <div className="jp-dist-OtherPool-head">
              <strong title={notebook}>
                {joinFacts([user ?? trans.__('Another program'), name])}
              </strong>
            </div>
            <div className="jp-dist-quiet">
              {joinFacts([
                trans._n('GPU %2', 'GPUs %2', gpus.length, gpus.join(', ')),
                shared && trans.__('shared'),
                since !== null &&
                  trans.__('since %1', formatMoment(since, serverTime())),
                trans.__('another Jupyter server')
              ])}
            </div>
          </li>
        );
      })}
    </ul>
  );
}
