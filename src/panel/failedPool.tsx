import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useLayoutEffect, useRef } from 'react';

import type { IPool } from '../model/contract';
import { CopyButton } from './controls';
import type { IPanelServices } from './services';
import { StartForm } from './startForm';
import { StatePill } from './statePill';

/**
 * A pool that failed: why, what to do about it, and another try.
 */
export function FailedPool(
  props: IPanelServices & { pool: IPool }
): JSX.Element {
  const { pool, trans } = props;
  const reason = pool.reason;
  const log = reason?.stderr.join('\n') ?? '';
  return (
    <>
      <div className="jp-dist-StateLine">
        <StatePill kind="error" label={trans.__('Failed')} />
      </div>
      {reason && (
        <div className="jp-dist-Reason" role="alert">
          <p className="jp-dist-error">{reason.message}</p>
          {reason.hint && <p>{reason.hint}</p>}
        </div>
      )}
      {log && <LastLines log={log} trans={trans} />}
      <StartForm
        {...props}
        ranks={pool.world_size}
        label={trans.__('Start again')}
      />
    </>
  );
}

interface ILastLinesProps {
  log: string;
  trans: TranslationBundle;
}

/** What stderr said, scrolled to its end: there stands the error. */
function LastLines({ log, trans }: ILastLinesProps): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [log]);
  const label = trans.__('Last lines of stderr');
  return (
    <div className="jp-dist-LogBox">
      <div className="jp-dist-Spread">
        <span className="jp-dist-quiet">{label}</span>
        <CopyButton text={log} trans={trans} />
      </div>
      <pre ref={box} className="jp-dist-Log" tabIndex={0} aria-label={label}>
        {log}
      </pre>
    </div>
  );
}
