import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';

import { hasMode, poolOf } from '../../model/contract';
import type { IPoolsModel } from '../../model/tokens';
import { headLength, whereRuns } from './magic';

/**
 * Asks a rank for a completion as soon as a cell for it is edited. The first one imports Jedi there, which
 * takes longer than anybody waits for a Tab. Ranks for which nobody writes a cell do not import it.
 */
export function warmUpCompletion(
  { content, sessionContext }: NotebookPanel,
  model: IPoolsModel
): void {
  const asked = new Set<string>();
  const look = ({ mode, activeCell }: Notebook) => {
    if (mode !== 'edit' || activeCell?.model.type !== 'code') {
      return;
    }
    const kernel = sessionContext.session?.kernel;
    const pool = poolOf(kernel?.id, model.pools.values());
    if (!kernel || pool?.state !== 'RUNNING') {
      return;
    }
    const source = activeCell.model.sharedModel.getSource();
    const where = whereRuns(source, hasMode(pool, kernel.id));
    const key = `${pool.id} ${pool.generation} ${where}`;
    if (where === null || asked.has(key)) {
      return;
    }
    asked.add(key);
    const head = source.slice(0, headLength(source));
    const code = whereRuns(head) === null ? 'torch.' : `${head}\ntorch.`;
    // There may be no answer: the kernel may end, or run a cell for hours.
    kernel
      .requestComplete({ code, cursor_pos: code.length })
      .catch(() => undefined);
  };
  content.stateChanged.connect(look);
  content.activeCellChanged.connect(look);
  content.modelContentChanged.connect(look);
}
