import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

import { poolOf } from '../../model/contract';
import { NotebookKernels } from '../../model/notebook';
import { IPoolsModel, LOAD } from '../../model/tokens';

/**
 * A kernel that was restarted has forgotten the magics, while its pool goes on: they are loaded again, and
 * with that the notebook uses its pool again.
 */
export const afterRestartPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:after-restart',
  description: 'Loads the magics again after a restart of the kernel.',
  autoStart: true,
  requires: [INotebookTracker, IPoolsModel],
  activate: (
    _: JupyterFrontEnd,
    tracker: INotebookTracker,
    model: IPoolsModel
  ): void => {
    const kernels = new NotebookKernels(tracker);
    const restarting = new WeakSet<ISessionContext>();
    const load = (context: ISessionContext) => {
      if (restarting.delete(context)) {
        const id = context.session?.kernel?.id ?? '';
        const pool = poolOf(id, model.pools.values());
        if (pool?.ended === null) {
          void kernels.runMagic(id, LOAD);
        }
      }
    };
    const follow = (context: ISessionContext, status: Kernel.Status) => {
      if (status === 'restarting' || status === 'autorestarting') {
        restarting.add(context);
      } else if (status === 'idle') {
        load(context);
      }
    };
    // After a restart that the user asks for, cells wait for this connection: the magics come before them.
    const connect = (
      context: ISessionContext,
      status: Kernel.ConnectionStatus
    ) => {
      if (status === 'connected') {
        load(context);
      }
    };
    tracker.widgetAdded.connect((_, { sessionContext }) => {
      sessionContext.statusChanged.connect(follow);
      sessionContext.connectionStatusChanged.connect(connect);
    });
  }
};
