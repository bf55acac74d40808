import { Button } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import type { IParameter } from '../../model/jobDraft';
import { trans } from '../../model/trans';
import { focusFirst } from '../../ui/controls';
import type { ISubmitFieldProps } from './submitField';

/**
 * Parameters, a row each; several values make one job each.
 */
export function ParameterTable(props: ISubmitFieldProps): JSX.Element {
  const { draft, change } = props;
  const { parameters } = draft;
  const [isAdding, setIsAdding] = useState(false);
  const set = (parameters: IParameter[]) => change({ ...draft, parameters });
  const edit = (index: number, changes: Partial<IParameter>) =>
    set(
      parameters.map((one, i) => (i === index ? { ...one, ...changes } : one))
    );
  return (
    <div className="jp-dist-Parameters">
      {parameters.map(({ name, values }, index) => (
        <div key={index} className="jp-dist-Parameters-row">
          <input
            className="jp-dist-Input jp-mod-code"
            aria-label={trans.__('Name of parameter %1', index + 1)}
            placeholder={trans.__('name')}
            spellCheck={false}
            // Who adds a row wants to write into it.
            autoFocus={isAdding}
            value={name}
            onChange={({ target }) =>
              edit(index, { name: target.value.trim() })
            }
          />
          <span aria-hidden>=</span>
          <input
            className="jp-dist-Input jp-mod-code"
            aria-label={trans.__('Values of parameter %1', index + 1)}
            placeholder="0.1, 0.01"
            spellCheck={false}
            value={values}
            onChange={({ target }) => edit(index, { values: target.value })}
          />
          <Button
            small
            type="button"
            aria-label={trans.__('Remove parameter %1', name || index + 1)}
            onClick={({ currentTarget }) => {
              focusFirst(
                currentTarget.closest<HTMLElement>('.jp-dist-Parameters'),
                'button'
              );
              set(parameters.filter((_, i) => i !== index));
            }}
          >
            ×
          </Button>
        </div>
      ))}
      <button
        type="button"
        className="jp-dist-Link"
        onClick={() => {
          setIsAdding(true);
          set([...parameters, { name: '', values: '' }]);
        }}
      >
        {trans.__('Add parameter')}
      </button>
    </div>
  );
}
