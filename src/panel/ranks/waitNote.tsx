import React from 'react';

import type { IPool } from '../../model/contract';
import type { IPanelServices } from '../services';
import { warningIcon } from '../../ui/warningIcon';
import { CommandIDs } from '../../model/tokens';
import { useLongWait } from '../../ui/useLongWait';
import { sayLongWait } from '../../words/waitWords';

/**
 * Which rank the others wait for, and what to press.
 */
export function WaitNote(
  props: IPanelServices & { pool: IPool }
): JSX.Element | null {
  const { pool, model, commands, trans } = props;
  const wait = useLongWait(pool, model);
  if (!wait) {
    return null;
  }
  const { head, rest } = sayLongWait(wait, trans);
  const link = (label: string, command: string) => (
    <button
      type="button"
      className="jp-dist-TextLink"
      onClick={() => void commands.execute(command, { pool: pool.id })}
    >
      {label}
    </button>
  );
  return (
    <div className="jp-dist-WaitNote" role="status">
      <warningIcon.react tag="span" className="jp-dist-WaitNote-icon" />
      <p>
        <strong>{head}</strong> {rest}{' '}
        {link(trans.__('Show stacks'), CommandIDs.showStacks)}
        {' · '}
        {link(trans.__('Interrupt'), CommandIDs.interruptRanks)}
      </p>
    </div>
  );
}
