import React from 'react';

import { labelOf } from '../../model/cards';
import { pickedGpus } from '../../model/startDraft';
import { trans } from '../../model/trans';
import { focusFirst, Link } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { GpuChip } from './gpuChip';
import type { IWidgetProps } from './fields';

/** The GPUs of the machine, to pick from; with none picked the server takes free ones. */
export function GpusField(props: IWidgetProps): JSX.Element | null {
  const { model, schema, draft, field, onChange } = props;
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const isLost = useModel(
    model,
    ({ connection }) => connection.state === 'stale'
  );
  const picked = pickedGpus(schema, draft);
  const isStale = useModel(
    model.telemetry,
    ({ trouble }) => typeof trouble?.since === 'number'
  );
  if (!gpus.length) {
    return null;
  }
  const pick = (label: string, isPicked: boolean) => {
    const others = picked.filter(other => other !== label);
    // In the order of the machine, so that ranks are too.
    const labels = gpus
      .map(labelOf)
      .filter(other => (other === label ? isPicked : others.includes(other)));
    onChange(labels.length ? labels : undefined);
  };
  return (
    <fieldset className="jp-dist-Chips">
      <legend>
        {field.title}
        {picked.length ? (
          <Link
            onClick={({ currentTarget }) => {
              // This button goes, and the focus would with it.
              focusFirst(currentTarget.closest('fieldset'), 'input');
              onChange(undefined);
            }}
          >
            {trans.__('Clear')}
          </Link>
        ) : (
          <span className="jp-dist-quiet">{trans.__('Any free GPU')}</span>
        )}
      </legend>
      <div
        className={
          isLost || isStale
            ? 'jp-dist-Chips-grid jp-mod-stale'
            : 'jp-dist-Chips-grid'
        }
      >
        {gpus.map(gpu => (
          <GpuChip
            key={gpu.uuid}
            {...props}
            gpu={gpu}
            isPicked={picked.includes(labelOf(gpu))}
            onPick={isPicked => pick(labelOf(gpu), isPicked)}
          />
        ))}
      </div>
    </fieldset>
  );
}
