import React from 'react';

import type { IPool } from '../../model/contract';
import { LOAD } from '../../model/tokens';
import { CopyButton, Note } from '../../ui/controls';
import { formatTime } from '../../words/format';
import type { IPanelServices } from '../services';

interface IOrphanNoteProps extends IPanelServices {
  pool: IPool;
  /** Unix seconds. */
  since: number;
}

/**
 * What has become of a pool whose kernel is gone, and how to go on with it.
 */
export function OrphanNote(props: IOrphanNoteProps): JSX.Element {
  const { pool, since, model, trans } = props;
  const magics = `${LOAD}\n%dist_attach ${pool.id}`;
  return (
    <Note kind="warn">
      <p>
        {trans.__(
          'The kernel of this pool has been gone since %1. Its ranks keep their variables, but are stopped after a while if no notebook attaches.',
          formatTime(since * 1000)
        )}
      </p>
      <p>
        {pool.id === model.pool?.id
          ? trans.__(
              'Stop them, restart the kernel to go on with them, or run this in another notebook:'
            )
          : trans.__(
              'Stop them, or run this in a notebook to go on with them:'
            )}
      </p>
      <pre className="jp-dist-Log">{magics}</pre>
      <CopyButton text={magics} trans={trans} />
    </Note>
  );
}
