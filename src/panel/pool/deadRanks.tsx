import { Button } from '@jupyterlab/ui-components';
import React, { useLayoutEffect, useRef } from 'react';

import { deadRanks } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { CopyButton } from '../../ui/controls';
import { useInSight } from '../../ui/useInSight';
import { useModel } from '../../ui/useModel';
import { listRanks } from '../../words/format';
import { sayDeaths, sayRestartDead } from '../../words/poolState';
import type { IPanelServices } from '../services';

/** What ranks that died wrote last, and how to go on without losing the others' variables. */
export function DeadRanks(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, current, commands } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  const dead = deadRanks(pool);
  const lost = pool.lost_nodes ?? [];
  const note = useInSight<HTMLDivElement>(
    listRanks(dead.map(({ rank }) => rank))
  );
  if (!dead.length) {
    return null;
  }
  return (
    // Only the sentence is read out at once, and not all that a rank wrote.
    <div ref={note} className="jp-dist-Note jp-mod-error">
      <p role="alert">{sayDeaths(pool)}</p>
      {dead
        .filter(({ stderr }) => stderr.length)
        .map(({ rank, stderr }) => (
          <LastLines
            key={rank}
            label={trans.__('Last lines of rank %1', rank)}
            log={stderr.join('\n')}
          />
        ))}
      <Button
        small
        className="jp-mod-primary"
        disabled={isPending}
        onClick={() =>
          void commands.execute(CommandIDs.restartRanks, {
            pool: pool.id,
            dead: true
          })
        }
      >
        {sayRestartDead(pool)}
      </Button>
      {lost.length > 0 && (
        <Button
          small
          className="jp-dist-mod-long"
          disabled={isPending}
          onClick={() =>
            void commands.execute(CommandIDs.leaveLostNodes, { pool: pool.id })
          }
        >
          {trans._n(
            'Go on without node %2…',
            'Go on without nodes %2…',
            lost.length,
            lost.join(', ')
          )}
        </Button>
      )}
    </div>
  );
}

interface ILastLinesProps {
  log: string;
  label?: string;
}

/** What stderr said, scrolled to its end: there stands the error. */
export function LastLines(props: ILastLinesProps): JSX.Element {
  const { log } = props;
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
        <CopyButton text={log} />
      </div>
      <pre ref={box} className="jp-dist-Log" tabIndex={0} aria-label={label}>
        {log}
      </pre>
    </div>
  );
}
