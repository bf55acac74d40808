import { PathExt } from '@jupyterlab/coreutils';
import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { hasRanks } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { isParked, parkStage } from '../../model/parking';
import { serverTime } from '../../model/serverTime';
import type { ITelemetry } from '../../model/telemetry';
import { CommandIDs, LOAD } from '../../model/tokens';
import { trans } from '../../model/trans';
import { useNow } from '../../ui/clock';
import { StatePill } from '../../ui/controls';
import { openNotebook } from '../../ui/dialogs';
import { useModel } from '../../ui/useModel';
import { formatBytes, formatMoment, joinFacts } from '../../words/format';
import { nameStage, sayParked } from '../../words/parkWords';
import { countRanks } from '../../words/poolWords';
import { IdleNote } from '../pool/idleNote';
import type { IPanelServices } from '../services';

type Props = IPanelServices & { pool: IPool };

/** A pool of another notebook, or one that has lost its own: what it has, and what can be done with it. */
export function OtherPool(props: Props): JSX.Element {
  const { pool, current, commands } = props;
  const hasNotebook = useModel(current, ({ notebook }) => notebook !== null);
  const name = PathExt.basename(pool.name) || pool.id;
  const isEnding = pool.state === 'COMPLETING';
  const isStarting = !hasRanks(pool) && !isEnding;
  const attach = `${LOAD}\n%dist_attach ${pool.id}`;
  return (
    <li
      className="jp-dist-OtherPool"
      aria-label={trans.__('Pool of %1', name)}
      data-dist-code={attach}
    >
      <div className="jp-dist-OtherPool-head">
        <strong title={pool.name}>{name}</strong>
        <State {...props} />
      </div>
      <div className="jp-dist-quiet">
        <What {...props} />
      </div>
      {pool.orphaned !== null && hasRanks(pool) && (
        <p className="jp-dist-quiet">
          {trans.__(
            'Its kernel has been gone since %1. The ranks keep their variables, but are stopped after a while if no notebook attaches.',
            formatMoment(pool.orphaned, serverTime())
          )}
        </p>
      )}
      <IdleNote {...props} />
      <div className="jp-dist-Actions">
        {pool.orphaned !== null && hasRanks(pool) && (
          <Button
            small
            title={trans.__('Use these ranks here (runs %dist_attach)')}
            disabled={!hasNotebook}
            onClick={() =>
              void commands.execute(CommandIDs.attachPool, { pool: pool.id })
            }
          >
            {trans.__('Attach')}
          </Button>
        )}
        {pool.name && (
          <Button small onClick={() => void openNotebook(pool.name, commands)}>
            {trans.__('Open notebook')}
          </Button>
        )}
        <Button
          small
          disabled={isEnding}
          onClick={() =>
            void commands.execute(CommandIDs.stopPool, { pool: pool.id })
          }
        >
          {isStarting ? trans.__('Cancel') : trans.__('Stop…')}
        </Button>
      </div>
    </li>
  );
}

function State({ pool }: Props): JSX.Element {
  const stage = parkStage(pool);
  switch (pool.state) {
    case 'RUNNING':
    case 'SUSPENDED':
      return pool.orphaned !== null ? (
        <StatePill kind="error" label={trans.__('Orphaned')} />
      ) : stage ? (
        <StatePill kind="wait" label={nameStage(stage)} />
      ) : (
        <StatePill kind="ok" label={trans.__('Running')} />
      );
    case 'COMPLETING':
      return <StatePill kind="wait" label={trans.__('Stopping')} />;
    default:
      return <StatePill kind="wait" label={trans.__('Starting')} />;
  }
}

/** `4 ranks · GPUs 0, 1 · 31.2 GiB`; of one that is parked `4 ranks`, and since when. */
function What(props: Props): JSX.Element {
  const { pool, model } = props;
  const memory = useModel(model.telemetry, telemetry =>
    memoryOf(pool, telemetry)
  );
  const labels = pool.ranks.flatMap(({ gpu }) => (gpu ? [gpu.label] : []));
  const gpus = [...new Set(labels)];
  if (isParked(pool)) {
    return (
      <>
        {countRanks(pool.world_size)}
        <Parked {...props} />
      </>
    );
  }
  return (
    <>
      {joinFacts([
        countRanks(pool.world_size),
        gpus.length
          ? trans._n('GPU %2', 'GPUs %2', gpus.length, gpus.join(', '))
          : pool.ranks.length > 0 && trans.__('CPU'),
        memory > 0 && formatBytes(memory)
      ])}
    </>
  );
}

function Parked({ pool, clock }: Props): JSX.Element {
  return <p>{sayParked(pool, useNow(clock))}</p>;
}

/** What torch holds on GPUs; on the CPU, what the processes have. */
function memoryOf(pool: IPool, telemetry: ITelemetry): number {
  return pool.ranks
    .map(({ rank }) => telemetry.rank(pool.id, rank).usage)
    .reduce((sum, use) => sum + (use?.reserved ?? use?.memory ?? 0), 0);
}
