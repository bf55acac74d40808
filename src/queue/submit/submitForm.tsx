import { HTMLSelect } from '@jupyterlab/ui-components';
import React, {
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState
} from 'react';

import { labelOf } from '../../model/cards';
import { readDraft, type IJobDraft } from '../../model/jobDraft';
import type { JobRequests } from '../../model/queue';
import { joinWords } from '../../model/shellWords';
import { serverTime } from '../../model/serverTime';
import type {
  IJobPlan,
  IJobRequest,
  ISubmitSchema
} from '../../model/submitContract';
import type { IApiError } from '../../model/contract';
import type { IGpu } from '../../model/gpuContract';
import { trans } from '../../model/trans';
import { joinSentences } from '../../words/format';
import { jobOptions, sayLeftBraces, sayPlan } from '../../words/submitWords';
import { isDrawable, SubmitField } from './submitField';

interface ISubmitFormProps {
  schema: ISubmitSchema;
  draft: IJobDraft;
  gpus: readonly IGpu[];
  requests: JobRequests;
  refusal: IApiError | null;
  onChange: (request: IJobRequest | null) => void;
}

interface IAnswer {
  key: string;
  plan: IJobPlan | null;
  error: IApiError | null;
}

/** The fields of the server's schema, and what would happen to the jobs. */
export function SubmitForm(props: ISubmitFormProps): JSX.Element {
  const { schema, gpus, requests, refusal, onChange } = props;
  const [draft, setDraft] = useState(props.draft);
  const [hasMore, setHasMore] = useState(false);
  const [answer, setAnswer] = useState<IAnswer | null>(null);
  const id = useId();
  const form = useRef<HTMLDivElement>(null);
  useLayoutEffect(
    () => form.current?.querySelector<HTMLElement>('.jp-mod-code')?.focus(),
    []
  );
  const { request, errors } = readDraft(schema, draft);
  const isRight = Object.keys(errors).length === 0;
  const isComplete = isRight && Boolean(request.command || request.notebook);
  const key = isComplete ? JSON.stringify(request) : '';
  useEffect(() => {
    onChange(key ? (JSON.parse(key) as IJobRequest) : null);
    if (!key) {
      return;
    }
    let isWanted = true;
    // Ask once the user stops typing.
    const timer = setTimeout(() => {
      requests.planJobs(JSON.parse(key) as IJobRequest).then(
        plan => isWanted && setAnswer({ key, plan, error: null }),
        (error: IApiError) => isWanted && setAnswer({ key, plan: null, error })
      );
    }, 300);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [key, onChange, requests]);

  const known = answer?.key === key ? answer : null;
  const error = refusal ?? known?.error ?? null;
  const fields = Object.entries(schema.properties).filter(
    ([name, field]) =>
      isDrawable(field) &&
      (!['command', 'notebook'].includes(name) || name === draft.what) &&
      (gpus.length > 0 || !/gpu/.test(name))
  );
  const draw = ([name, field]: (typeof fields)[number]) => (
    <SubmitField
      key={name}
      {...{ name, field, draft, gpus }}
      change={setDraft}
      error={
        errors[name] ??
        (error?.field === name
          ? joinSentences([error.message, error.hint])
          : null)
      }
    />
  );
  const isAdvanced = ([, field]: (typeof fields)[number]) =>
    field['x-advanced'] ?? false;
  const more = fields.filter(isAdvanced);
  const isAtField = fields.some(([name]) => name === error?.field);
  const isInMore = more.some(
    ([name]) => name in errors || name === error?.field
  );
  return (
    <div ref={form} className="jp-dist-SubmitForm">
      <div className="jp-dist-SubmitField">
        <label htmlFor={id} className="jp-dist-SubmitField-label">
          {trans.__('Run')}
        </label>
        <div className="jp-dist-SubmitField-control">
          <HTMLSelect
            id={id}
            value={draft.what}
            onChange={({ target }) =>
              setDraft({ ...draft, what: target.value as IJobDraft['what'] })
            }
          >
            <option value="command">{trans.__('Command or script')}</option>
            <option value="notebook">{trans.__('Notebook')}</option>
          </HTMLSelect>
        </div>
      </div>
      {fields.filter(field => !isAdvanced(field)).map(draw)}
      <button
        type="button"
        className="jp-dist-Fold"
        aria-expanded={hasMore || isInMore}
        onClick={() => setHasMore(!hasMore)}
      >
        {trans.__('More options')}
      </button>
      {(hasMore || isInMore) && more.map(draw)}
      {Object.keys(draft.others).length > 0 && (
        <p className="jp-dist-quiet">
          {trans.__(
            'As before: %1',
            joinWords(jobOptions(draft.others, {}, ''))
          )}
        </p>
      )}
      <Outlook
        {...props}
        plan={known?.plan ?? null}
        error={isAtField ? null : error}
        isAsking={key !== '' && known === null}
      />
    </div>
  );
}

interface IOutlookProps extends ISubmitFormProps {
  plan: IJobPlan | null;
  error: IApiError | null;
  isAsking: boolean;
}

/** When the jobs would start, or why they are refused. */
function Outlook(props: IOutlookProps): JSX.Element {
  const { plan, error, isAsking, gpus } = props;
  const more = plan ? plan.count - plan.commands.length : 0;
  const labels = gpus
    .filter(({ uuid }) => plan?.gpus.includes(uuid))
    .map(labelOf);
  const leftBraces = plan && sayLeftBraces(plan);
  return (
    <div className="jp-dist-Outlook" role="status" aria-busy={isAsking}>
      {error ? (
        <Refusal error={error} />
      ) : plan ? (
        <>
          <p>
            <strong>{sayPlan(plan, labels.join(', '), serverTime())}</strong>
          </p>
          {leftBraces && <p className="jp-dist-warn">{leftBraces}</p>}
          {plan.count > 1 && (
            <pre className="jp-dist-Log" tabIndex={0}>
              {plan.commands.join('\n')}
              {more > 0 && `\n${trans.__('… and %1 more', more)}`}
            </pre>
          )}
        </>
      ) : (
        <p className="jp-dist-quiet">
          {isAsking
            ? trans.__('Checking…')
            : trans.__('Here you see when the job would start.')}
        </p>
      )}
    </div>
  );
}

export function Refusal({ error }: { error: IApiError }): JSX.Element {
  return (
    <>
      <p className="jp-dist-error">{error.message}</p>
      {error.hint && <p>{error.hint}</p>}
    </>
  );
}
