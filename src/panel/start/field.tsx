import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import React, { useId } from 'react';

import type { IStartField, IStartSchema } from '../../model/contract';
import type { IPanelServices } from '../services';
import type { Draft } from '../../model/draft';
import { EnvField } from './envField';
import { GpusField } from './gpusField';
import { RanksField } from './ranksField';
import { BytesField, ChoiceField, FlagField, NumberField } from './fields';

interface IFieldProps extends IPanelServices {
  schema: IStartSchema;
  field: IStartField;
  draft: Draft;
  /** How many ranks are on offer. */
  offer: number | null;
  value: unknown;
  /** What is wrong with it. */
  error: string | null;
  /** Without a value, the server chooses. */
  onChange: (value?: ReadonlyPartialJSONValue) => void;
}

/** What each widget is given. */
export interface IWidgetProps extends IFieldProps {
  /** The id of what its label is for. */
  id: string;
  /** What its control has, so that the error and the description are read with it. */
  aria: { 'aria-describedby': string; 'aria-invalid': boolean };
}

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

/**
 * One field of the start form: its label, its control, and what is wrong.
 */
export function Field(props: IFieldProps): JSX.Element {
  const { field, error } = props;
  const id = useId();
  const Widget = WIDGETS[field['x-widget']];
  const aria = {
    'aria-describedby': `${id}description ${id}error`,
    'aria-invalid': error !== null
  };
  return (
    <div className="jp-dist-Field" title={field.description}>
      <Widget {...props} id={id} aria={aria} />
      <span id={`${id}description`} hidden>
        {field.description}
      </span>
      <p id={`${id}error`} className="jp-dist-Field-error" role="status">
        {error}
      </p>
    </div>
  );
}
