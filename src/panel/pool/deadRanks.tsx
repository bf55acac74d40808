import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { deadRanks } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { CopyButton } from '../../ui/controls';
import { useInSight } from '../../ui/useInSight';
import { useModel } from '../../ui/useModel';
import { listRanks } from '../../words/format';
import { sayDeaths, sayRestartDead } from '../../words/poolWords';
import type { IPanelServices } from '../services';

/** Which ranks died, and how to go on without losing the others' variables. */
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
    <div ref={note} className="jp-dist-Note jp-mod-error">
      <p role="alert">{sayDeaths(pool)}</p>
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

/** What the ranks that died wrote last. */
export function LastLinesOfDead({ pool }: { pool: IPool }): JSX.Element {
  return (
    <>
      {deadRanks(pool)
        .filter(({ stderr }) => stderr.length)
        .map(({ rank, stderr }) => (
          <LastLines
            key={rank}
            label={trans.__('Last lines of rank %1', rank)}
            log={stderr.join('\n')}
          />
        ))}
    </>
  );
}

/** The end of a log, where the error stands, needs no scroll bar of its own. */
const MOST_LINES = 12;

interface ILastLinesProps {
  log: string;
  label?: string;
}

/** What stderr said at its end; all of it can be copied. */
export function LastLines(props: ILastLinesProps): JSX.Element {
  const { log } = props;
  const label = props.label ?? trans.__('Last lines of stderr');
  return (
    <div className="jp-dist-LogBox">
      <div className="jp-dist-Spread">
        <span className="jp-dist-quiet">{label}</span>
        <CopyButton text={log} />
      </div>
      <pre className="jp-dist-Log" aria-label={label}>
        {log.split('\n').slice(-MOST_LINES).join('\n')}
      </pre>
    </div>
  );
}
