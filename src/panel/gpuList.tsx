import React from 'react';

import { cards } from '../model/cards';
import { isInUse } from '../model/holders';
import { hasNothingToShow } from './connectionNote';
import { Note } from './controls';
import { CpuList } from './cpuList';
import { formatTime } from './format';
import { GpuCard } from './gpuCard';
import { MigCard } from './migCard';
import type { IPanelServices } from './services';
import { useTelemetry } from './useTelemetry';

/**
 * The GPUs of the machine and how busy they are, or why there are none.
 */
export function GpuList(services: IPanelServices): JSX.Element {
  const { model, trans } = services;
  const { gpus, gpusError, connection } = model;
  const trouble = useTelemetry(model.telemetry, ({ trouble }) => trouble);
  if (hasNothingToShow(connection)) {
    return <div className="jp-dist-Body" />;
  }
  if (gpusError) {
    return (
      <div className="jp-dist-Body" role="alert">
        <p className="jp-dist-error">{gpusError.message}</p>
        {gpusError.hint && <p>{gpusError.hint}</p>}
      </div>
    );
  }
  const since = trouble?.since ?? null;
  const isStale = since !== null || connection.state === 'stale';
  return (
    <div className="jp-dist-Body">
      {trouble && (
        <Note kind="warn">
          {since === null
            ? trouble.message
            : trans.__(
                'Stale since %1: %2',
                formatTime(since * 1000),
                trouble.message
              )}
        </Note>
      )}
      {gpus?.problems.map(problem => (
        <Note key={problem} kind="warn">
          {problem}
        </Note>
      ))}
      {gpus?.reason && gpus.reason !== trouble?.message && (
        <p className="jp-dist-quiet">{gpus.reason}</p>
      )}
      {gpus?.gpus.length ? (
        <ul
          className={isStale ? 'jp-dist-Cards jp-mod-stale' : 'jp-dist-Cards'}
          aria-label={trans.__('GPUs')}
        >
          {cards(gpus.gpus).map(card =>
            'gpu' in card ? (
              <GpuCard key={card.gpu.uuid} {...services} gpu={card.gpu} />
            ) : (
              <MigCard
                key={card.instances[0].parent}
                {...services}
                instances={card.instances}
              />
            )
          )}
        </ul>
      ) : (
        gpus && <CpuList {...services} />
      )}
    </div>
  );
}

/**
 * What stands beside the section's title: `8 · 5 in use`.
 */
export function GpuSummary({
  model,
  trans
}: IPanelServices): JSX.Element | null {
  const gpus = model.gpus?.gpus ?? [];
  const used = useTelemetry(
    model.telemetry,
    telemetry => gpus.filter(({ uuid }) => isInUse(telemetry.gpu(uuid))).length
  );
  if (!gpus.length) {
    return null;
  }
  return (
    <>{used ? trans.__('%1 · %2 in use', gpus.length, used) : gpus.length}</>
  );
}
