import React from 'react';

import type { IPool } from '../model/contract';
import { CommandIDs } from '../tokens';
import { useNow } from './clock';
import { Button, Note } from './controls';
import { formatActivity, nameRanks } from './format';
import { RankTile } from './rankTile';
import type { IPanelServices } from './services';
import { StatePill } from './statePill';

type Props = IPanelServices & { pool: IPool };

/**
 * A pool at work, or on its way out: what it does, what can be done, and every rank.
 */
export function RunningPool(props: Props): JSX.Element {
  const { pool, model, commands, clock, trans } = props;
  const isRunning = pool.state === 'RUNNING';
  const isStale = model.connection.state === 'stale';
  const dead = pool.ranks.filter(({ state }) => state === 'dead');
  const button = (command: string, label: string, title: string) => (
    <Button
      title={title}
      isDisabled={model.isPending || !isRunning}
      onClick={() => void commands.execute(command)}
    >
      {label}
    </Button>
  );
  return (
    <>
      <div className="jp-dist-StateLine">
        {isRunning ? (
          <>
            <StatePill
              kind={dead.length ? 'error' : 'ok'}
              label={trans.__('Running')}
            />
            <Activity {...props} />
          </>
        ) : (
          <StatePill kind="wait" label={trans.__('Stopping')} />
        )}
      </div>
      <div
        className="jp-dist-Actions"
        role="group"
        aria-label={trans.__('Pool actions')}
      >
        {button(
          CommandIDs.interruptRanks,
          trans.__('Interrupt'),
          trans.__('Stop the running cell; variables are kept.')
        )}
        {button(
          CommandIDs.restartRanks,
          trans.__('Restart…'),
          trans.__('Replace all ranks; variables are lost.')
        )}
        {button(
          CommandIDs.stopPool,
          trans.__('Stop…'),
          trans.__('End all ranks; variables are lost.')
        )}
      </div>
      <ul
        className={isStale ? 'jp-dist-Ranks jp-mod-stale' : 'jp-dist-Ranks'}
        aria-label={trans.__('Ranks')}
      >
        {pool.ranks.map(rank => (
          <RankTile
            key={rank.rank}
            rank={rank}
            isEnding={!isRunning}
            clock={clock}
            trans={trans}
          />
        ))}
      </ul>
      {isRunning && dead.length > 0 && (
        <Note kind="error">
          {trans.__(
            'Restart the ranks to go on: the others would wait for %1.',
            nameRanks(dead, pool, trans)
          )}
        </Note>
      )}
      {pool.notices.map(notice => (
        <Note key={notice}>{notice}</Note>
      ))}
    </>
  );
}

function Activity({ pool, clock, trans }: Props): JSX.Element {
  const now = useNow(clock);
  return (
    <span className="jp-dist-quiet">{formatActivity(pool, now, trans)}</span>
  );
}
