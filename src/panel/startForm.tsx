import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useId, useState } from 'react';

import { CommandIDs, MAX_RANKS } from '../tokens';
import { Button } from './controls';
import type { IPanelServices } from './services';

interface IStartFormProps extends IPanelServices {
  /** How many ranks to offer. */
  ranks: number;
  label: string;
}

/**
 * Asks for the number of ranks and starts them.
 */
export function StartForm(props: IStartFormProps): JSX.Element {
  const { model, commands, trans } = props;
  // Until the user chooses, the offer follows the settings and the GPUs found.
  const [chosen, setChosen] = useState<number | null>(null);
  const ranks = chosen ?? props.ranks;
  const isValid = Number.isInteger(ranks) && ranks >= 1 && ranks <= MAX_RANKS;
  return (
    <form
      className="jp-dist-StartForm"
      aria-label={trans.__('Start ranks')}
      onSubmit={event => {
        event.preventDefault();
        void commands.execute(CommandIDs.startPool, { ranks });
      }}
    >
      <RanksStepper ranks={ranks} onChange={setChosen} trans={trans} />
      <Button
        type="submit"
        isPrimary
        isDisabled={
          !isValid || !commands.isEnabled(CommandIDs.startPool, { ranks })
        }
      >
        {model.isPending ? trans.__('Starting…') : props.label}
      </Button>
    </form>
  );
}

interface IRanksStepperProps {
  ranks: number;
  onChange: (ranks: number) => void;
  trans: TranslationBundle;
}

function RanksStepper(props: IRanksStepperProps): JSX.Element {
  const { ranks, onChange, trans } = props;
  const id = useId();
  return (
    <div className="jp-dist-Stepper">
      <label htmlFor={id}>{trans.__('Ranks')}</label>
      <div className="jp-dist-Stepper-controls">
        <button
          className="jp-dist-Button"
          type="button"
          aria-label={trans.__('One rank less')}
          disabled={!(ranks > 1)}
          onClick={() => onChange(ranks - 1)}
        >
          −
        </button>
        <input
          id={id}
          className="jp-dist-Stepper-input"
          type="number"
          min={1}
          max={MAX_RANKS}
          step={1}
          required
          value={Number.isNaN(ranks) ? '' : ranks}
          onChange={event => onChange(event.target.valueAsNumber)}
        />
        <button
          className="jp-dist-Button"
          type="button"
          aria-label={trans.__('One rank more')}
          disabled={!(ranks < MAX_RANKS)}
          onClick={() => onChange(ranks + 1)}
        >
          +
        </button>
      </div>
    </div>
  );
}
