import { Button, HTMLSelect } from '@jupyterlab/ui-components';
import React, { useId, useState } from 'react';

import { labelOf } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import type { IJobDraft, IParameter } from '../../model/jobDraft';
import type { ISubmitField } from '../../model/submitContract';
import { trans } from '../../model/trans';
import { focusFirst } from '../../ui/controls';

interface ISubmitFieldProps {
  name: string;
  field: ISubmitField;
  draft: IJobDraft;
  change: (draft: IJobDraft) => void;
  error: string | null;
  gpus: readonly IGpu[];
}

/** Connects a control to its label, error and description. */
interface IWidgetProps extends ISubmitFieldProps {
  aria: { id: string; 'aria-describedby': string; 'aria-invalid': boolean };
}

const WIDGETS: Record<string, (props: IWidgetProps) => JSX.Element> = {
  command: TextWidget,
  notebook: TextWidget,
  text: TextWidget,
  number: TextWidget,
  gpus: GpusWidget,
  gpu_ids: ChipsWidget,
  lines: LinesWidget,
  flag: FlagWidget,
  choice: ChoiceWidget,
  parameters: ParameterTable
};

/** A newer server may have fields of other kinds. */
export function isDrawable(field: ISubmitField): boolean {
  return field['x-widget'] in WIDGETS;
}

/** One field of the dialog: its label, control, description and error. */
export function SubmitField(props: ISubmitFieldProps): JSX.Element {
  const { field, error } = props;
  const id = useId();
  const widget = field['x-widget'];
  const Widget = WIDGETS[widget];
  const isGroup = widget === 'gpu_ids' || widget === 'parameters';
  const Label = isGroup ? 'span' : 'label';
  const aria = {
    id,
    'aria-describedby': `${id}hint ${id}error`,
    'aria-invalid': error !== null
  };
  return (
    <div
      className={`jp-dist-SubmitField jp-mod-${widget}`}
      {...(isGroup ? { role: 'group', 'aria-labelledby': `${id}label` } : {})}
    >
      <Label
        className="jp-dist-SubmitField-label"
        {...(isGroup ? { id: `${id}label` } : { htmlFor: id })}
      >
        {field.title}
      </Label>
      <div className="jp-dist-SubmitField-control">
        <Widget {...props} aria={aria} />
        <p id={`${id}hint`} className="jp-dist-quiet">
          {error ? '' : field.description}
        </p>
        <p id={`${id}error`} className="jp-dist-Field-error" role="status">
          {error}
        </p>
      </div>
    </div>
  );
}

function setText(
  { name, draft, change }: ISubmitFieldProps,
  text: string
): void {
  change({ ...draft, texts: { ...draft.texts, [name]: text } });
}

function TextWidget(props: IWidgetProps): JSX.Element {
  const { name, field, draft, aria } = props;
  const isCode = ['command', 'notebook'].includes(field['x-widget']);
  return (
    <input
      {...aria}
      type="text"
      className={isCode ? 'jp-dist-Input jp-mod-code' : 'jp-dist-Input'}
      autoCapitalize="off"
      autoComplete="off"
      spellCheck={false}
      inputMode={field.type === 'integer' ? 'numeric' : undefined}
      value={draft.texts[name] ?? ''}
      onChange={({ target }) => setText(props, target.value)}
    />
  );
}

function LinesWidget(props: IWidgetProps): JSX.Element {
  return (
    <textarea
      {...props.aria}
      className="jp-dist-Input jp-mod-code"
      rows={2}
      spellCheck={false}
      value={props.draft.texts[props.name] ?? ''}
      onChange={({ target }) => setText(props, target.value)}
    />
  );
}

function ChoiceWidget(props: IWidgetProps): JSX.Element {
  const { name, field, draft, aria } = props;
  return (
    <HTMLSelect
      {...aria}
      value={draft.texts[name] ?? ''}
      onChange={({ target }) => setText(props, target.value)}
    >
      <option value="">{trans.__('Default')}</option>
      {field.enum?.map((value, index) => (
        <option key={value} value={value}>
          {field['x-labels']?.[index] ?? value}
        </option>
      ))}
    </HTMLSelect>
  );
}

function FlagWidget({ name, draft, change, aria }: IWidgetProps): JSX.Element {
  return (
    <input
      {...aria}
      type="checkbox"
      checked={draft.flags[name] ?? false}
      onChange={({ target }) =>
        change({ ...draft, flags: { ...draft.flags, [name]: target.checked } })
      }
    />
  );
}

function GpusWidget(props: IWidgetProps): JSX.Element {
  const { gpus } = props;
  return (
    <span className="jp-dist-Amount">
      <TextWidget {...props} />
      <span className="jp-dist-quiet">{trans.__('of %1', gpus.length)}</span>
    </span>
  );
}

function ChipsWidget(props: IWidgetProps): JSX.Element {
  const { name, draft, gpus } = props;
  const picked = (draft.texts[name] ?? '').split(',').filter(Boolean);
  const labels = gpus.map(labelOf).map(String);
  const pick = (label: string, isPicked: boolean) => {
    const all = labels.filter(one =>
      one === label ? isPicked : picked.includes(one)
    );
    setText(props, all.join());
  };
  return (
    <span className="jp-dist-SubmitChips">
      {labels.map(label => (
        <label key={label} className="jp-dist-SubmitChip">
          <input
            type="checkbox"
            aria-label={trans.__('GPU %1', label)}
            checked={picked.includes(label)}
            onChange={({ target }) => pick(label, target.checked)}
          />
          {label}
        </label>
      ))}
    </span>
  );
}

/** A row for each parameter; several values make a job each. */
function ParameterTable({ draft, change }: IWidgetProps): JSX.Element {
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
            // The user goes on in a new row.
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
