import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useLayoutEffect, useRef } from 'react';

import { CopyButton } from '../../ui/controls';

interface ILastLinesProps {
  log: string;
  label?: string;
  trans: TranslationBundle;
}

/**
 * What stderr said, scrolled to its end: there stands the error.
 */
export function LastLines(props: ILastLinesProps): JSX.Element {
  const { log, trans } = props;
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [log]);
  const label = props.label ?? trans.__('Last lines of stderr');
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
