import { HTMLSelect } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import React from 'react';

import type { IStartField, IStartSchema } from '../../model/contract';
import type { Draft } from '../../model/startDraft';
import { trans } from '../../model/trans';
import type { IPanelServices } from '../services';

const GIB = 2 ** 30;

/** What a field of the start form is given. */
export interface IFieldProps extends IPanelServices {
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

/** One of several; the server's own choice is the default. */
export function ChoiceField(props: IWidgetProps): JSX.Element {
  const { id, aria, field, value, onChange } = props;
  const options = field.oneOf ?? [];
  const standard = options.some(option => option.const === field.default)
    ? String(field.default)
    : '';
  return (
    <div className="jp-dist-Spread">
      <label htmlFor={id}>{field.title}</label>
      <HTMLSelect
        id={id}
        {...aria}
        value={typeof value === 'string' ? value : standard}
        onChange={({ target }) =>
          onChange(target.value === standard ? undefined : target.value)
        }
      >
        {standard === '' && <option value="">{trans.__('Automatic')}</option>}
        {options.map(option => (
          <option key={option.const} value={option.const}>
            {option.title}
          </option>
        ))}
      </HTMLSelect>
    </div>
  );
}

export function FlagField(props: IWidgetProps): JSX.Element {
  const { id, aria, field, value, onChange } = props;
  const standard = field.default === true;
  return (
    <div className="jp-dist-Flag">
      <input
        id={id}
        type="checkbox"
        {...aria}
        checked={typeof value === 'boolean' ? value : standard}
        onChange={({ target }) =>
          onChange(target.checked === standard ? undefined : target.checked)
        }
      />
      <label htmlFor={id}>{field.title}</label>
    </div>
  );
}

export function NumberField(props: IWidgetProps): JSX.Element {
  return <Amount {...props} unit={props.field['x-unit'] ?? null} size={1} />;
}

/** Memory, in GiB. */
export function BytesField(props: IWidgetProps): JSX.Element {
  return <Amount {...props} unit={trans.__('GiB')} size={GIB} />;
}

interface IAmountProps extends IWidgetProps {
  unit: string | null;
  /** How many of the server's units one of the form's is. */
  size: number;
}

/** A number that may be left out. */
function Amount(props: IAmountProps): JSX.Element {
  const { id, aria, field, value, onChange, unit, size } = props;
  const standard = typeof field.default === 'number' ? field.default : null;
  const scaled = (value: number | undefined) =>
    value === undefined ? undefined : value / size;
  return (
    <div className="jp-dist-Spread">
      <label htmlFor={id}>{field.title}</label>
      <span className="jp-dist-Amount">
        <input
          id={id}
          className="jp-dist-Input"
          type="number"
          {...aria}
          min={scaled(field.minimum)}
          max={scaled(field.maximum)}
          step="any"
          placeholder={
            standard !== null
              ? `${standard / size}`
              : unit === null
                ? trans.__('any')
                : trans.__('none')
          }
          defaultValue={typeof value === 'number' ? value / size : ''}
          onChange={({ target: { value, valueAsNumber, validity } }) =>
            onChange(
              value === '' && !validity.badInput
                ? undefined
                : Number.isNaN(valueAsNumber)
                  ? null
                  : Math.round(valueAsNumber * size)
            )
          }
        />
        {unit}
      </span>
    </div>
  );
}
