import { HTMLSelect } from '@jupyterlab/ui-components';
import React, { useId } from 'react';

import { labelOf } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import type { IJobDraft } from '../../model/jobDraft';
import type { ISubmitField } from '../../model/submitContract';
import { trans } from '../../model/trans';
import { ParameterTable } from './parameterTable';

export interface ISubmitFieldProps {
  name: string;
  field: ISubmitField;
  draft: IJobDraft;
  change: (draft: IJobDraft) => void;
  /** What is wrong with it. */
  error: string | null;
  /** Those of the machine. */
  gpus: readonly IGpu[];
}

/** What a control has, so that its label, its error and its description are read with it. */
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

/** A newer server may have fields that we cannot draw. */
export function isDrawable(field: ISubmitField): boolean {
  return field['x-widget'] in WIDGETS;
}

/**
 * One field of the dialog: its label, its control, what it is about, and what is wrong.
 */
export function SubmitField(props: ISubmitFieldProps): JSX.Element {
  const { field, error } = props;
  const id = useId();
  const widget = field['x-widget'];
  const Widget = WIDGETS[widget];
  const isGroup = widget === 'gpu_ids' || widget === 'parameters';
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
      {isGroup ? (
        <span id={`${id}label`} className="jp-dist-SubmitField-label">
          {field.title}
        </span>
      ) : (
        <label htmlFor={id} className="jp-dist-SubmitField-label">
          {field.title}
        </label>
      )}
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
  const { name, draft, aria } = props;
  return (
    <textarea
      {...aria}
      className="jp-dist-Input jp-mod-code"
      rows={2}
      spellCheck={false}
      value={draft.texts[name] ?? ''}
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

/** GPUs that will do, to be picked. */
function ChipsWidget(props: IWidgetProps): JSX.Element {
  const { name, draft, gpus } = props;
  const picked = (draft.texts[name] ?? '').split(',').filter(Boolean);
  const labels = gpus.map(labelOf).map(String);
  return (
    <span className="jp-dist-SubmitChips">
      {labels.map(label => (
        <label key={label} className="jp-dist-SubmitChip">
          <input
            type="checkbox"
            aria-label={trans.__('GPU %1', label)}
            checked={picked.includes(label)}
            onChange={({ target }) =>
              setText(
                props,
                labels
                  .filter(one =>
                    one === label ? target.checked : picked.includes(one)
                  )
                  .join()
              )
            }
          />
          {label}
        </label>
      ))}
    </span>
  );
}

function setText(
  { name, draft, change }: ISubmitFieldProps,
  text: string
): void {
  change({ ...draft, texts: { ...draft.texts, [name]: text } });
}
