import type { IRenderMime } from '@jupyterlab/rendermime';
import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useMemo, useRef, useState } from 'react';

import type { IJobLines, ILinesQuery } from '../../model/detailsContract';
import { JobLog } from '../../model/jobLog';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts } from '../../words/format';
import { LogView } from './logView';
import type { DetailsProps } from './props';

/** A job's output or, if it is in another file, its errors. */
export function OutputPane(props: DetailsProps): JSX.Element {
  const { job, details, model, sanitizer } = props;
  const { output, error } = details;
  const { requests } = model.queue;
  const [showsErrors, setShowsErrors] = useState(false);
  const nameOf = (isError: boolean) =>
    isError ? trans.__('Errors') : trans.__('Output');
  const shown = (showsErrors && error) || output;
  return (
    <LogPane
      // The output of the next attempt is appended to the same file.
      key={`${job} ${details.job.attempt}`}
      read={query =>
        requests.jobLines(
          job,
          shown === output ? query : { ...query, error: 1 }
        )
      }
      label={nameOf(showsErrors)}
      file={shown}
      choice={
        error !== null && (
          <div
            className="jp-dist-LogPane-choice"
            role="group"
            aria-label={trans.__('Standard output or standard error')}
          >
            {[false, true].map(isError => (
              <Button
                key={`${isError}`}
                small
                aria-pressed={isError === showsErrors}
                onClick={() => setShowsErrors(isError)}
              >
                {nameOf(isError)}
              </Button>
            ))}
          </div>
        )
      }
      {...{ sanitizer }}
    />
  );
}

interface ILogPaneProps {
  read: (query: ILinesQuery) => Promise<IJobLines>;
  sanitizer: IRenderMime.ISanitizer;
  label: string;
  file: string;
  choice: React.ReactNode;
}

/** A file that a job writes, live, with a search in all of it. */
function LogPane(props: ILogPaneProps): JSX.Element {
  const { sanitizer, label, file, choice } = props;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- `read` is a new function each time
  const log = useMemo(() => new JobLog(props.read), [file]);
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<LogView | null>(null);
  const [text, setText] = useState('');
  /** The log in which the last search found nothing. */
  const [missing, setMissing] = useState<JobLog | null>(null);
  const isLost = missing === log;
  useEffect(() => {
    const made = new LogView(log, sanitizer, label);
    view.current = made;
    host.current?.append(made.node);
    void log.toEnd();
    const timer = setInterval(() => {
      const isSeen = !document.hidden && made.node.offsetParent !== null;
      // New lines are not loaded while an earlier part is shown.
      if (isSeen && made.follows && !log.isComplete && !log.isBusy) {
        void log.later();
      }
    }, 1000);
    return () => {
      clearInterval(timer);
      made.dispose();
    };
  }, [log, sanitizer, label]);
  const where = useModel(log, ({ size, lines, error }) =>
    error
      ? error.message
      : !lines.length
        ? trans.__('Nothing has been printed yet.')
        : joinFacts([formatBytes(size), file])
  );
  const find = async (): Promise<void> => {
    if (!text) {
      return;
    }
    await log.find(text);
    if (!log.error) {
      setMissing(log.found === null ? log : null);
      if (log.found !== null) {
        view.current?.show(log.found);
      }
    }
  };
  const goTo = async (isEnd: boolean): Promise<void> => {
    if (view.current) {
      view.current.follows = isEnd;
    }
    if (isEnd) {
      await log.toEnd();
    } else {
      await log.toStart();
      view.current?.show(0);
    }
  };
  return (
    <section className="jp-dist-LogPane" aria-label={label}>
      <div className="jp-dist-LogPane-bar">
        {choice}
        <span className="jp-dist-LogPane-file jp-dist-quiet" title={file}>
          {where}
        </span>
        <form
          onSubmit={event => {
            event.preventDefault();
            void find();
          }}
        >
          <input
            type="search"
            className="jp-dist-Input"
            aria-label={trans.__('Search')}
            placeholder={trans.__('Search')}
            aria-invalid={isLost}
            value={text}
            onChange={({ target }) => {
              setText(target.value);
              setMissing(null);
            }}
          />
          <span className="jp-dist-quiet" role="status">
            {isLost ? trans.__('Not found') : ''}
          </span>
          <Button small type="submit">
            {trans.__('Next')}
          </Button>
        </form>
        <Button small onClick={() => void goTo(false)}>
          {trans.__('Start')}
        </Button>
        <Button small onClick={() => void goTo(true)}>
          {trans.__('End')}
        </Button>
      </div>
      <div ref={host} className="jp-dist-LogPane-host" />
    </section>
  );
}
