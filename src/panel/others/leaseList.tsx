import { PathExt } from '@jupyterlab/coreutils';
import React from 'react';

import type { IForeignLease } from '../../model/leases';
import { formatTime } from '../../words/format';
import type { IPanelServices } from '../services';

interface ILeaseListProps extends IPanelServices {
  leases: IForeignLease[];
}

/**
 * What other servers and users have leased; there is nothing that we could do about it.
 */
export function LeaseList({ leases, trans }: ILeaseListProps): JSX.Element {
  return (
    <ul
      className="jp-dist-Cards"
      aria-label={trans.__('Leases of other servers and users')}
    >
      {leases.map(({ user, pid, since, notebook, shared, gpus }) => {
        const name =
          PathExt.basename(notebook) ||
          (pid === null ? '' : trans.__('pid %1', pid));
        return (
          <li key={`${user} ${pid} ${gpus}`} className="jp-dist-OtherPool">
            <div className="jp-dist-OtherPool-head">
              <strong title={notebook}>
                {[user ?? trans.__('A program that is not ours'), name]
                  .filter(Boolean)
                  .join(' · ')}
              </strong>
            </div>
            <div className="jp-dist-quiet">
              {[
                trans._n('GPU %2', 'GPUs %2', gpus.length, gpus.join(', ')),
                shared && trans.__('shared'),
                since && trans.__('since %1', formatTime(since * 1000)),
                trans.__('not of this server')
              ]
                .filter(Boolean)
                .join(' · ')}
            </div>
          </li>
        );
      })}
    </ul>
  );
}
