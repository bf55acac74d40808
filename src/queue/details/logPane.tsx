import type { IRenderMime } from '@jupyterlab/rendermime';
import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useMemo, useRef, useState } from 'react';

import type { IJobLines, ILinesQuery } from '../../model/detailsContract';
import { JobLog } from '../../model/jobLog';
import { trans } from '../../model/trans';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts } from '../../words/format';
import { LogView } from './logView';

/** Milliseconds between two looks at what a job that runs has printed. */
const PAUSE = 1000;

interface ILogPaneProps {
  read: (query: ILinesQuery) => Promise<IJobLines>;
  sanitizer: IRenderMime.ISanitizer;
  /** What is read, and where that is. */
  label: string;
  file: string;
  /** Chooses what is read, if there is a choice. */
  choice: React.ReactNode;
}

/**
 * What a job prints, live, with a search in all of it.
 */
export function LogPane(props: ILogPaneProps): JSX.Element {
  const { sanitizer, label, file, choice } = props;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- `read` is a new function each time
  const log = useMemo(() => new JobLog(props.read), [file]);
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<LogView | null>(null);
  const [text, setText] = useState('');
  // In which log the last search found nothing.
  const [missing, setMissing] = useState<JobLog | null>(null);
  const isLost = missing === log;
  useEffect(() => {
    const made = new LogView(log, sanitizer, label);
    view.current = made;
    host.current?.append(made.node);
    void log.toEnd();
    const timer = setInterval(() => {
      const isSeen = !document.hidden && made.node.offsetParent !== null;
      // Who reads an earlier part is not sent the newest one.
      if (isSeen && made.follows && !log.isComplete && !log.isBusy) {
        void log.later();
      }
    }, PAUSE);
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
    if (text) {
      await log.find(text);
      if (log.error) {
        // It is not known whether it is there.
        return;
      }
      setMissing(log.found === null ? log : null);
      if (log.found !== null) {
        view.current?.show(log.found);
      }
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
        <Button
          small
          onClick={() => {
            if (view.current) {
              view.current.follows = false;
            }
            void log.toStart().then(() => view.current?.show(0));
          }}
        >
          {trans.__('Start')}
        </Button>
        <Button
          small
          onClick={() => {
            if (view.current) {
              view.current.follows = true;
            }
            void log.toEnd();
          }}
        >
          {trans.__('End')}
        </Button>
      </div>
      <div ref={host} className="jp-dist-LogPane-host" />
    </section>
  );
}
