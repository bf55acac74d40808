import React from 'react';

import { hasNothingToShow } from './connectionNote';
import { formatMemory } from './format';
import type { IPanelServices } from './services';

/**
 * The GPUs of the machine, or why there are none.
 */
export function GpuList({ model, trans }: IPanelServices): JSX.Element {
  const { gpus, gpusError, connection } = model;
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
  if (!gpus?.gpus.length) {
    return (
      <div className="jp-dist-Body">
        <p className="jp-dist-quiet">{gpus?.reason}</p>
      </div>
    );
  }
  return (
    <ul
      className="jp-dist-Body jp-dist-Gpus"
      aria-label={trans.__('GPUs')}
      // A long list scrolls, and has nothing else that the keyboard could reach.
      tabIndex={0}
    >
      {gpus.gpus.map(gpu => {
        const label = trans.__('GPU %1', gpu.index);
        return (
          <li key={gpu.uuid} aria-label={label} title={gpu.uuid}>
            <strong>{label}</strong>
            <span className="jp-dist-quiet">{gpu.name}</span>
            <span className="jp-dist-Gpus-memory">
              {formatMemory(gpu.memory_total, trans)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/**
 * What stands beside the section's title: how many GPUs there are.
 */
export function GpuSummary({ model }: IPanelServices): JSX.Element | null {
  const count = model.gpus?.gpus.length;
  return count ? <>{count}</> : null;
}
