import { PathExt } from '@jupyterlab/coreutils';
import React from 'react';

import type { IPool } from '../model/contract';
import { formatBytes } from './format';
import { Percent } from './percent';
import type { IPanelServices } from './services';
import { Sparkline } from './sparkline';
import { useTelemetry } from './useTelemetry';
import { Missing } from './value';

/**
 * What ranks use on a machine without a GPU, those of the current notebook first.
 */
export function CpuList(services: IPanelServices): JSX.Element | null {
  const { model, trans } = services;
  const pools = [...model.pools.values()]
    .filter(({ state }) => state === 'RUNNING')
    .sort((a, b) => Number(b === model.pool) - Number(a === model.pool));
  if (!pools.length) {
    return null;
  }
  return (
    <ul
      className="jp-dist-Cards"
      aria-label={trans.__('Use of the CPU')}
      // A long list scrolls, and has nothing else that the keyboard could reach.
      tabIndex={0}
    >
      {pools.flatMap(pool =>
        pool.ranks
          .filter(({ state }) => state !== 'dead')
          .map(({ rank }) => (
            <CpuCard
              key={`${pool.id} ${rank}`}
              {...services}
              pool={pool}
              rank={rank}
            />
          ))
      )}
    </ul>
  );
}

interface ICpuCardProps extends IPanelServices {
  pool: IPool;
  rank: number;
}

function CpuCard({ pool, rank, model, trans }: ICpuCardProps): JSX.Element {
  const { usage, curve } = useTelemetry(model.telemetry, telemetry =>
    telemetry.rank(pool.id, rank)
  );
  const name = trans.__('Rank %1', rank);
  const cpu = usage?.cpu ?? null;
  const memory = usage?.memory ?? null;
  const silent = <Missing reason={trans.__('The rank has not said yet')} />;
  return (
    <li className="jp-dist-GpuCard" aria-label={name}>
      <div className="jp-dist-GpuCard-head">
        <strong>{name}</strong>
        <span className="jp-dist-quiet" title={pool.name}>
          {PathExt.basename(pool.name)}
        </span>
        <Percent
          label={trans.__('CPU use of %1', name)}
          title={trans.__('100 % is one core')}
          value={cpu}
          trans={trans}
        >
          {cpu === null ? silent : trans.__('%1 %', Math.round(cpu))}
        </Percent>
      </div>
      <Sparkline
        label={trans.__('CPU use of %1 in the last 15 minutes', name)}
        curve={curve}
        rank={rank}
      />
      <div className="jp-dist-Spread jp-dist-quiet">
        <span>
          {memory === null
            ? silent
            : trans.__('%1 of memory', formatBytes(memory, trans))}
        </span>
        {usage && <span>{trans.__('pid %1', usage.pid)}</span>}
      </div>
    </li>
  );
}
