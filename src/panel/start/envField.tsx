import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import { variablesOf } from '../../model/startDraft';
import type { IVariable } from '../../model/startDraft';
import { trans } from '../../model/trans';
import { focusFirst, Link } from '../../ui/controls';
import type { IWidgetProps } from './fields';

const EMPTY: IVariable = { name: '', value: '' };

/** Environment variables, a row each. */
export function EnvField(props: IWidgetProps): JSX.Element {
  const { aria, field, value, onChange } = props;
  const variables = variablesOf(value);
  const [isAdding, setIsAdding] = useState(false);
  const set = (variables: IVariable[]) =>
    onChange(
      variables.length ? variables.map(each => ({ ...each })) : undefined
    );
  const edit = (index: number, change: Partial<IVariable>) =>
    set(variables.map((v, i) => (i === index ? { ...v, ...change } : v)));
  return (
    <fieldset className="jp-dist-Env">
      <legend>
        {field.title}
        <Link
          onClick={() => {
            setIsAdding(true);
            set([...variables, EMPTY]);
          }}
        >
          {trans.__('Add variable')}
        </Link>
      </legend>
      {variables.map((variable, index) => (
        <div key={index} className="jp-dist-Env-row">
          <input
            className="jp-dist-Input"
            {...aria}
            aria-label={trans.__('Name of variable %1', index + 1)}
            placeholder={trans.__('NAME')}
            autoCapitalize="off"
            spellCheck={false}
            // Who adds a row wants to write into it.
            autoFocus={isAdding}
            value={variable.name}
            onChange={({ target }) => edit(index, { name: target.value })}
          />
          <span aria-hidden>=</span>
          <input
            className="jp-dist-Input"
            {...aria}
            aria-label={trans.__('Value of variable %1', index + 1)}
            placeholder={trans.__('value')}
            autoCapitalize="off"
            spellCheck={false}
            value={variable.value ?? ''}
            onChange={({ target }) => edit(index, { value: target.value })}
          />
          <Button
            small
            type="button"
            aria-label={
              variable.name
                ? trans.__('Remove %1', variable.name)
                : trans.__('Remove variable %1', index + 1)
            }
            onClick={({ currentTarget }) => {
              // The last row goes, and the focus would with it.
              focusFirst(currentTarget.closest('fieldset'), 'button');
              set(variables.filter((_, i) => i !== index));
            }}
          >
            ×
          </Button>
        </div>
      ))}
    </fieldset>
  );
}
