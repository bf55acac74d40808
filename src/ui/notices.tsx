import { closeIcon } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import { trans } from '../model/trans';
import type { UiState } from '../model/uiState';
import { focusFirst, Link, Note } from './controls';
import { useModel } from './useModel';

/** The name under which dismissed notices are remembered. */
const DISMISSED = 'dismissedNotices';
/** As many are remembered. */
const MOST = 40;

interface INoticesProps {
  /** Of what they are: a notice of something else is shown again. Without it, none can be dismissed. */
  of?: string;
  notices: readonly string[];
  uiState: UiState;
  kind?: 'info' | 'warn';
}

/** Sentences that need no action; more than one fold into a line. */
export function Notices(props: INoticesProps): JSX.Element | null {
  const { of, uiState, kind } = props;
  const [isOpen, setIsOpen] = useState(false);
  const dismissed = useModel(uiState, state => state.get(DISMISSED)) as
    string[] | undefined;
  const keyOf = (notice: string) => `${of} ${notice}`;
  const notices = props.notices.filter(
    notice => of === undefined || !dismissed?.includes(keyOf(notice))
  );
  const { length } = notices;
  const isFolded = length > 1 && !isOpen;
  if (!length) {
    return null;
  }
  return (
    <div className="jp-dist-Notices">
      {length > 1 && (
        <Link aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {trans._n('%1 notice', '%1 notices', length)}
        </Link>
      )}
      {!isFolded &&
        notices.map(notice => (
          <Note key={notice} kind={kind}>
            <span>{notice}</span>
            {of !== undefined && (
              <button
                className="jp-dist-MenuButton"
                type="button"
                aria-label={trans.__('Dismiss this notice')}
                title={trans.__('Dismiss this notice')}
                onClick={({ currentTarget }) => {
                  // This button goes, and the focus would with it.
                  const { parentElement: note } = currentTarget;
                  focusFirst(
                    (note?.nextElementSibling ??
                      note?.previousElementSibling ??
                      null) as HTMLElement | null,
                    'button'
                  );
                  const all = [...(dismissed ?? []), keyOf(notice)];
                  uiState.set(DISMISSED, all.slice(-MOST));
                }}
              >
                <closeIcon.react tag="span" width="12px" height="12px" />
              </button>
            )}
          </Note>
        ))}
    </div>
  );
}
