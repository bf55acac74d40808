import { PathExt } from '@jupyterlab/coreutils';
import React from 'react';

import type { IPool } from '../../model/contract';
import { Percent } from '../../ui/meters';
import { Sparkline } from '../../ui/sparkline';
import { useModel } from '../../ui/useModel';
import { Missing } from '../../ui/value';
import { formatBytes, namePid } from '../../words/format';
import type { IPanelServices } from '../services';

/** Whether all ranks are shown, as the user chose. */
const SHOW_ALL = 'showAllCpus';
/** As many cards are shown without folding: each has a chart that moves. */
const MANY = 8;

/**
 * What ranks use on a machine without a GPU, those of the current notebook first.
 */
export function CpuList(services: IPanelServices): JSX.Element | null {
  const { model, current, uiState, trans } = services;
  const isUnfolded = useModel(uiState, state => state.get(SHOW_ALL) === true);
  const pools = useModel(model, ({ pools }) => pools);
  const own = useModel(current, ({ pool }) => pool);
  const all = [...pools.values()]
    .filter(({ state }) => state === 'RUNNING')
    .sort((a, b) => Number(b === own) - Number(a === own))
    .flatMap(pool =>
      pool.ranks
        .filter(({ state }) => state !== 'dead')
        .map(({ rank }) => ({ pool, rank }))
    );
  if (!all.length) {
    return null;
  }
  return (
    <>
      <ul
        className="jp-dist-Cards"
        aria-label={trans.__('CPU use')}
        // A long list scrolls, and has nothing else that the keyboard could reach.
        tabIndex={0}
      >
        {(isUnfolded ? all : all.slice(0, MANY)).map(({ pool, rank }) => (
          <CpuCard
            key={`${pool.id} ${rank}`}
            {...services}
            pool={pool}
            rank={rank}
          />
        ))}
      </ul>
      {all.length > MANY && (
        <div className="jp-dist-Links">
          <button
            className="jp-dist-Link"
            type="button"
            onClick={() => uiState.set(SHOW_ALL, !isUnfolded)}
          >
            {isUnfolded
              ? trans.__('Show fewer')
              : trans.__('Show %1 more', all.length - MANY)}
          </button>
        </div>
      )}
    </>
  );
}

interface ICpuCardProps extends IPanelServices {
  pool: IPool;
  rank: number;
}

function CpuCard({ pool, rank, model, trans }: ICpuCardProps): JSX.Element {
  const { usage, curve } = useModel(model.telemetry, telemetry =>
    telemetry.rank(pool.id, rank)
  );
  const name = trans.__('Rank %1', rank);
  const cpu = usage?.cpu ?? null;
  const memory = usage?.memory ?? null;
  const silent = <Missing reason={trans.__('No reading')} />;
  return (
    <li className="jp-dist-GpuCard" aria-label={name}>
      <div className="jp-dist-GpuCard-head">
        <strong>{name}</strong>
        <span className="jp-dist-quiet" title={pool.name}>
          {PathExt.basename(pool.name)}
        </span>
        <Percent
          label={trans.__('CPU use of rank %1', rank)}
          title={trans.__('100 % is one core')}
          value={cpu}
          trans={trans}
        >
          {cpu === null ? silent : trans.__('%1 %', Math.round(cpu))}
        </Percent>
      </div>
      <Sparkline
        label={trans.__('CPU use of rank %1 in the last 15 minutes', rank)}
        curve={curve}
        rank={rank}
      />
      <div className="jp-dist-Spread jp-dist-quiet">
        <span>
          {memory === null
            ? silent
            : trans.__('%1 of memory', formatBytes(memory, trans))}
        </span>
        {usage && <span>{namePid(usage.pid)}</span>}
      </div>
    </li>
  );
}
