import { PathExt } from '@jupyterlab/coreutils';
import {
  Button,
  closeIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import React from 'react';

import { deadRanks, hasRanks, isBusy } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { isParked, parkStage } from '../../model/parking';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { silentRanks } from '../../model/waiting';
import { useNow } from '../../ui/clock';
import { Link, MenuButton, Sentence, StatePill } from '../../ui/controls';
import { warningIcon } from '../../ui/icons';
import { Notices } from '../../ui/notices';
import { useInSight } from '../../ui/useInSight';
import { useLongWait } from '../../ui/useLongWait';
import { useModel } from '../../ui/useModel';
import { formatBytes, joinFacts, namePid } from '../../words/format';
import { sayNodes } from '../../words/nodeWords';
import { nameStage, sayParkRule } from '../../words/parkWords';
import {
  countDead,
  countSilent,
  sayActivity,
  sayInterrupt,
  sayPlacement,
  sayRestart
} from '../../words/poolWords';
import { sayNotedWait } from '../../words/waitWords';
import { RankList } from '../ranks/rankList';
import { openPoolMenu } from '../ranks/rankMenu';
import { gpuOf } from '../ranks/rankUse';
import type { IPanelServices } from '../services';
import { DeadRanks, LastLinesOfDead } from './deadRanks';
import { IdleNote } from './idleNote';
import { ParkNote } from './parkNote';
import { ResizeNote } from './resizeNote';

type Props = IPanelServices & { pool: IPool };

/** A running or stopping pool: its state and what is wrong, its buttons and its ranks. */
export function RunningPool(
  props: Props & { children: React.ReactNode }
): JSX.Element {
  const { children, pool, model, current, commands, uiState } = props;
  const isPending = useModel(current, ({ isPending }) => isPending);
  const isRunning = pool.state === 'RUNNING';
  const isThere = hasRanks(pool);
  const stage = parkStage(pool);
  // Two notes would leave little room where they stay in sight.
  const isDead = isThere && deadRanks(pool).length > 0;
  const interruptedAt = useModel(model, model => model.interruptedAt(pool.id));
  const silent = useModel(
    model.telemetry,
    telemetry => silentRanks(pool, telemetry).length
  );
  const button = (
    command: string,
    icon: LabIcon,
    label: string,
    title: string,
    isOfUse = isRunning
  ) => (
    <Button
      small
      title={title}
      disabled={isPending || !isOfUse}
      onClick={() => void commands.execute(command, { pool: pool.id })}
    >
      <icon.react tag="span" width="12px" height="12px" />
      {label}
    </Button>
  );
  return (
    <>
      <div className="jp-dist-PoolTop">
        <div className="jp-dist-StateLine">
          {isThere ? (
            interruptedAt !== null ? (
              <StatePill kind="wait" label={trans.__('Interrupting…')} />
            ) : isDead ? (
              <StatePill kind="error" label={countDead(pool)} />
            ) : silent > 0 ? (
              <StatePill kind="error" label={countSilent(silent)} />
            ) : stage ? (
              <StatePill kind="wait" label={nameStage(stage)} />
            ) : (
              <StatePill kind="ok" label={trans.__('Running')} />
            )
          ) : pool.state === 'CONFIGURING' ? (
            <StatePill
              kind="wait"
              label={
                pool.resizing
                  ? trans.__('Resizing')
                  : trans.__('Replacing ranks')
              }
            />
          ) : (
            <StatePill kind="wait" label={trans.__('Stopping')} />
          )}
          <MenuButton
            label={trans.__('Menu of the pool')}
            open={place => openPoolMenu(props, pool.id, place)}
          />
          {isRunning && !isParked(pool) && (
            <Activity {...props} interruptedAt={interruptedAt} />
          )}
        </div>
        {children}
        {isRunning && <DeadRanks {...props} />}
        {!isDead && <WaitNote {...props} />}
      </div>
      {isDead && <WaitNote {...props} />}
      <ParkNote {...props} />
      <PoolFacts {...props} />
      <div
        className="jp-dist-Actions"
        role="group"
        aria-label={trans.__('Pool actions')}
      >
        {button(
          CommandIDs.interruptRanks,
          stopIcon,
          trans.__('Interrupt'),
          trans.__('Stop the running cell; variables are kept.'),
          isRunning && isBusy(pool)
        )}
        {button(
          CommandIDs.restartRanks,
          refreshIcon,
          trans.__('Restart…'),
          pool.state === 'SUSPENDED'
            ? trans.__('Resume the pool first.')
            : trans.__('Replace all ranks; variables are lost.')
        )}
        {button(
          CommandIDs.stopPool,
          closeIcon,
          trans.__('Stop…'),
          trans.__('End all ranks; variables are lost.'),
          isThere
        )}
      </div>
      <ResizeNote {...props} />
      <OtherUsers {...props} />
      <IdleNote {...props} />
      <RankList {...props} />
      {isThere && <LastLinesOfDead pool={pool} />}
      <Notices of={pool.id} notices={pool.notices} uiState={uiState} />
    </>
  );
}

/**
 * How the ranks were placed, and their total memory: `Placement: in order · 124 GiB allocated`.
 */
function PoolFacts({ pool, model }: Props): JSX.Element {
  const isOnGpus = pool.ranks.some(rank => gpuOf(rank) !== null);
  const size = useModel(model.telemetry, telemetry => {
    const memory = pool.ranks
      .map(({ rank }) => telemetry.rank(pool.id, rank).usage)
      .map(usage => (isOnGpus ? usage?.allocated : usage?.memory) ?? 0)
      .reduce((sum, bytes) => sum + bytes, 0);
    return memory && !isParked(pool) ? formatBytes(memory) : '';
  });
  return (
    <p className="jp-dist-quiet">
      {joinFacts([
        sayNodes(pool),
        isOnGpus ? sayPlacement(pool.placement) : trans.__('on the CPU'),
        size &&
          (isOnGpus
            ? trans.__('%1 allocated', size)
            : trans.__('%1 of memory', size)),
        parkStage(pool) === null && sayParkRule(pool)
      ])}
    </p>
  );
}

/** The other notebooks that use the pool, and lose their variables with it. */
function OtherUsers({ pool, current }: Props): JSX.Element | null {
  const kernels = pool.attachments.filter(who => who.as === 'kernel');
  const here = useModel(current, current =>
    current.pool?.id === pool.id ? current.notebook?.kernelId : pool.kernel_id
  );
  const own = kernels.find(who => who.kernel_id === here);
  const others = kernels.filter(({ pid }) => pid !== own?.pid);
  // A kernel may hold the pool twice, once without its name.
  others.sort((a, b) => a.name.localeCompare(b.name));
  const names = new Map(
    others.map(({ pid, name }) => [pid, PathExt.basename(name) || namePid(pid)])
  );
  return names.size ? (
    <p className="jp-dist-quiet">
      {trans.__('Also used by %1', [...names.values()].join(', '))}
    </p>
  ) : null;
}

function Activity(
  props: Props & { interruptedAt: number | null }
): JSX.Element {
  const { pool, clock, interruptedAt } = props;
  const now = useNow(clock);
  return (
    <span className="jp-dist-StateLine-activity jp-dist-quiet">
      {interruptedAt === null
        ? sayActivity(pool, now)
        : sayInterrupt(now - interruptedAt)}
    </span>
  );
}

/** Which rank the others wait for, and what to do about it. */
function WaitNote(props: Props): JSX.Element | null {
  const { pool, model, commands } = props;
  const wait = useLongWait(pool, model);
  const words = wait && sayNotedWait(wait);
  const note = useInSight<HTMLDivElement>(words?.head);
  if (!wait || !words) {
    return null;
  }
  const { head, rest } = words;
  const link = (label: string, command: string, ranks?: number[]) => (
    <Link
      onClick={() =>
        void commands.execute(command, {
          pool: pool.id,
          ...(ranks && { ranks })
        })
      }
    >
      {label}
    </Link>
  );
  // To replace dead ranks there is a button already.
  const dead = deadRanks(pool).map(({ rank }) => rank);
  const stuck = (wait.verdict?.remedies ?? [])
    .flatMap(({ restarts }) => restarts)
    .filter(rank => !dead.includes(rank));
  // The rank that the others wait for, if its cell can be stopped.
  const debugged = wait.verdict?.ranks.find(rank =>
    commands.isEnabled(CommandIDs.debugRank, { pool: pool.id, rank })
  );
  return (
    <div ref={note} className="jp-dist-WaitNote" role="status">
      <warningIcon.react tag="span" className="jp-dist-WaitNote-icon" />
      <p>
        <strong>{head}</strong> <Sentence text={rest} />{' '}
        {link(trans.__('Show stacks'), CommandIDs.showStacks)}
        {debugged !== undefined && (
          <>
            {' · '}
            <Link
              onClick={() =>
                void commands.execute(CommandIDs.debugRank, {
                  pool: pool.id,
                  rank: debugged
                })
              }
            >
              {trans.__('Debug rank %1', debugged)}
            </Link>
          </>
        )}
        {' · '}
        {link(trans.__('Interrupt'), CommandIDs.interruptRanks)}
        {stuck.length > 0 && (
          <>
            {' · '}
            {link(sayRestart(stuck), CommandIDs.restartRanks, stuck)}
          </>
        )}
      </p>
    </div>
  );
}
