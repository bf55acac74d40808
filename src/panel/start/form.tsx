import { Button } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React, { useEffect, useId, useState } from 'react';

import type {
  IApiError,
  IPool,
  IStartField,
  IStartSchema
} from '../../model/contract';
import { toChoice, errorsOf } from '../../model/startDraft';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { Link } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { joinSentences } from '../../words/format';
import { startCode } from '../../words/startCode';
import type { IPanelServices } from '../services';
import { Field, isKnown } from './field';

interface IStartFormProps extends IPanelServices {
  /** How many the last pool had, to be offered again; 0 if it ended before the server had chosen. */
  ranks?: number;
  label: string;
}

/** Asks for what the server's schema names, and starts a pool with it. */
export function StartForm(props: IStartFormProps): JSX.Element {
  const { model, current, start, commands, label } = props;
  // It follows the settings, and which GPUs are free.
  const preferred = useModel(model, ({ defaultRanks }) => defaultRanks);
  const free = useModel(model.telemetry, () => model.defaultRanks);
  const offer = props.ranks || (free ?? preferred);
  const path = useModel(current, ({ notebook }) => notebook?.path ?? '');
  const error = useModel(current, ({ error }) => error);
  const isPending = useModel(current, ({ isPending }) => isPending);
  const schema = useModel(start, start => start.schema);
  const draft = useModel(start, start => start.draft(path));
  const isLoading = useModel(start, start => start.isLoading);
  useEffect(() => void start.load(), [start]);

  const wrong = errorsOf(schema, draft, offer);
  const choice = toChoice(schema, draft, offer);
  const args = { choice: choice as ReadonlyPartialJSONObject };
  const canStart = useModel(current, () =>
    commands.isEnabled(CommandIDs.startPool, args)
  );
  const refused = error?.field;
  const fields = Object.entries(schema.properties)
    .filter(([, field]) => isKnown(field))
    .map(([name, field]) => ({
      name,
      field,
      error:
        wrong[name] ??
        (refused === name && error
          ? joinSentences([error.message, error.hint])
          : null)
    }));
  const draw = ({ name, field, error }: (typeof fields)[number]) => (
    <Field
      key={name}
      {...{ ...props, schema, draft, offer, field, error }}
      value={draft[name]}
      onChange={value => {
        if (refused === name) {
          current.dismissError();
        }
        start.change(path, name, value);
      }}
    />
  );
  const isRight = Object.keys(wrong).length === 0;
  const more = fields.filter(({ field }) => isAdvanced(field));
  return (
    <form
      className="jp-dist-StartForm"
      aria-label={trans.__('Start ranks')}
      aria-busy={isLoading}
      // What is wrong is said beside the fields.
      noValidate
      onSubmit={event => {
        event.preventDefault();
        if (isRight) {
          void commands.execute(CommandIDs.startPool, args);
        }
      }}
    >
      {fields.filter(({ field }) => !isAdvanced(field)).map(draw)}
      {isLoading && (
        <p className="jp-dist-quiet jp-dist-loading">
          {trans.__('Loading options…')}
        </p>
      )}
      {more.length > 0 && (
        <MoreOptions
          {...props}
          chosen={more.filter(({ name }) => name in choice).length}
          hasError={more.some(({ error }) => error)}
        >
          {more.map(draw)}
        </MoreOptions>
      )}
      <div className="jp-dist-StartForm-actions">
        <Button
          small
          type="submit"
          className="jp-mod-primary"
          disabled={!isRight || !canStart}
        >
          {isPending ? trans.__('Starting…') : label}
        </Button>
        <Button
          small
          type="button"
          title={trans.__('Insert a cell that starts the same ranks')}
          disabled={!isRight}
          onClick={() => {
            const source = startCode(choice);
            void commands.execute(CommandIDs.insertCode, { source });
          }}
        >
          {trans.__('Insert Code')}
        </Button>
      </div>
    </form>
  );
}

/** Whether an error of the last request is shown beside the field that it is about. */
export function isErrorAtField(
  pool: IPool | null,
  error: IApiError | null,
  schema: IStartSchema
): boolean {
  const field = schema.properties[error?.field ?? ''];
  const isShown = pool === null || pool.ended !== null;
  return isShown && Boolean(field) && isKnown(field);
}

function isAdvanced(field: IStartField): boolean {
  return field['x-advanced'] ?? false;
}

interface IMoreOptionsProps extends IPanelServices {
  /** How many of them are not left to the server. */
  chosen: number;
  hasError: boolean;
  children: React.ReactNode;
}

/** What few need; an error in there opens it. */
function MoreOptions(props: IMoreOptionsProps): JSX.Element {
  const { chosen, hasError, children } = props;
  const [isWanted, setIsWanted] = useState(false);
  const isOpen = isWanted || hasError;
  const id = useId();
  return (
    <>
      <Link
        className="jp-dist-StartForm-more"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setIsWanted(!isOpen)}
      >
        {chosen
          ? trans.__('More options (%1 chosen)', chosen)
          : trans.__('More options')}
      </Link>
      {isOpen && (
        <div id={id} className="jp-dist-StartForm-fields">
          {children}
        </div>
      )}
    </>
  );
}
