import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { deadRanks } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { countFree } from '../../model/gpuUse';
import { canResize } from '../../model/parking';
import { serverTime } from '../../model/serverTime';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { Note } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { sayLine } from '../../words/lineWords';
import type { IPanelServices } from '../services';

/** A pool that gets more or fewer ranks, could not, or could now have all that were asked for. */
export function ResizeNote(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, commands } = props;
  const button = (label: string, ranks: number) => (
    <Button
      small
      onClick={() =>
        void commands.execute(CommandIDs.resizePool, { pool: pool.id, ranks })
      }
    >
      {label}
    </Button>
  );
  const more = useGrowth(props);
  const { resizing, world_size } = pool;
  if (resizing?.failure) {
    return (
      <Note kind="warn">
        <p>{`${resizing.failure.message} ${resizing.failure.hint}`.trim()}</p>
        {button(trans.__('Dismiss'), world_size)}
      </Note>
    );
  }
  if (resizing) {
    const place = resizing.line && sayLine(resizing.line, serverTime());
    return (
      <Note>
        <span>
          {trans._n(
            'Resizing to %1 rank.',
            'Resizing to %1 ranks.',
            resizing.num_ranks
          )}{' '}
          {[resizing.reason, place].filter(Boolean).join(' ')}
        </span>
        {button(trans.__('Cancel'), world_size)}
      </Note>
    );
  }
  return more > 0 ? (
    <Note>
      <span>
        {trans._n('%1 more GPU is free.', '%1 more GPUs are free.', more)}
      </span>
      {button(
        trans.__('Grow to %1 ranks', world_size + more),
        world_size + more
      )}
    </Note>
  ) : null;
}

/** How many ranks a pool that was started with fewer than were asked for can get now. */
function useGrowth({ pool, model }: IPanelServices & { pool: IPool }): number {
  const gpus = useModel(model, ({ gpus }) => gpus)?.gpus ?? [];
  const free = useModel(model.telemetry, telemetry =>
    countFree(gpus, telemetry)
  );
  const missing = (pool.wanted_ranks ?? 0) - pool.world_size;
  const isOffered = canResize(pool) && !deadRanks(pool).length;
  return isOffered ? Math.min(missing, free ?? 0) : 0;
}
