import React, { useId } from 'react';

import type { IStartField } from '../../model/contract';
import { useInSight } from '../../ui/useInSight';
import { EnvField } from './envField';
import { BytesField, ChoiceField, FlagField, NumberField } from './fields';
import type { IFieldProps, IWidgetProps } from './fields';
import { GpusField } from './gpusField';
import { RanksField } from './ranksField';

const WIDGETS: Record<string, (props: IWidgetProps) => JSX.Element | null> = {
  ranks: RanksField,
  gpus: GpusField,
  choice: ChoiceField,
  flag: FlagField,
  env: EnvField,
  bytes: BytesField,
  number: NumberField
};

/** A newer server may have fields that we cannot draw: it chooses for itself then. */
export function isKnown(field: IStartField): boolean {
  return field['x-widget'] in WIDGETS;
}

/** One field of the start form: its label, its control, and what is wrong. */
export function Field(props: IFieldProps): JSX.Element {
  const { field, error } = props;
  const id = useId();
  const note = useInSight<HTMLParagraphElement>(error);
  const Widget = WIDGETS[field['x-widget']];
  const aria = {
    'aria-describedby': `${id}description ${id}error`,
    'aria-invalid': error !== null
  };
  return (
    <div className="jp-dist-Field" title={field.description}>
      <Widget {...props} id={id} aria={aria} />
      {field['x-notes']?.map(note => (
        <p key={note} className="jp-dist-quiet">
          {note}
        </p>
      ))}
      <span id={`${id}description`} hidden>
        {field.description}
      </span>
      <p
        ref={note}
        id={`${id}error`}
        className="jp-dist-Field-error"
        role="status"
      >
        {error}
      </p>
    </div>
  );
}
