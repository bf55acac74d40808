import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import {
  offeredRanks,
  pickedGpus,
  ranksOf,
  ranksOnCpu
} from '../../model/startDraft';
import { countFree } from '../../model/gpuUse';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import type { IWidgetProps } from './fields';

/** How many ranks, and what it means if there are fewer GPUs. */
export function RanksField(props: IWidgetProps): JSX.Element {
  const { id, aria, schema, field, draft, offer } = props;
  const { minimum = 1, maximum = Infinity } = field;
  const ranks = ranksOf(schema, draft, offer);
  const count = ranks ?? 0;
  const choose = (ranks: number) => {
    const offered = offeredRanks(schema, draft, offer);
    // Null is what is not a number; who chooses what is offered anyway lets it follow the GPUs again.
    const chosen = Number.isNaN(ranks) ? null : ranks;
    props.onChange(chosen === offered ? undefined : chosen);
  };
  const step = (by: number, sign: string, label: string) => (
    <Button
      small
      type="button"
      aria-label={label}
      disabled={by < 0 ? !(count > minimum) : !(count < maximum)}
      onClick={() => choose(count + by)}
    >
      {sign}
    </Button>
  );
  return (
    <>
      <div className="jp-dist-Stepper">
        <label htmlFor={id}>{field.title}</label>
        <div className="jp-dist-Stepper-controls">
          {step(-1, '−', trans.__('One rank fewer'))}
          <input
            id={id}
            className="jp-dist-Stepper-input"
            type="number"
            {...aria}
            min={minimum}
            max={maximum}
            step={1}
            required={ranks !== null}
            placeholder={trans.__('auto')}
            value={ranks === null || Number.isNaN(ranks) ? '' : ranks}
            onChange={event => choose(event.target.valueAsNumber)}
          />
          {step(1, '+', trans.__('One rank more'))}
        </div>
      </div>
      <Fit {...props} ranks={count} />
    </>
  );
}

/** Ranks and GPUs of different number, in words. */
function Fit(props: IWidgetProps & { ranks: number }): JSX.Element | null {
  const { model, schema, draft } = props;
  const ranks = props.ranks - ranksOnCpu(draft);
  const picked = pickedGpus(schema, draft).length;
  const all = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const free = useModel(model.telemetry, telemetry =>
    countFree(all, telemetry)
  );
  const gpus = picked || (free ?? 0);
  if (gpus > 0 && ranks > gpus) {
    return (
      <p className="jp-dist-quiet" role="status">
        {trans._n(
          'More ranks than GPUs: they share 1 GPU and use gloo (slower).',
          'More ranks than GPUs: they share %1 GPUs and use gloo (slower).',
          gpus
        )}
      </p>
    );
  }
  return picked > ranks ? (
    <p className="jp-dist-quiet" role="status">
      {trans._n(
        '%1 selected GPU stays unused.',
        '%1 selected GPUs stay unused.',
        picked - ranks
      )}
    </p>
  ) : null;
}
