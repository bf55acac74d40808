import type { NotebookPanel } from '@jupyterlab/notebook';

import { makeCodeCell } from './cell';

/** Makes the magics known to a kernel. */
export const LOAD = '%load_ext jupyter_dist_server';

/**
 * Put a code cell below the active cell of a notebook, and make it the active one, ready to be edited.
 *
 * What another cell loads already is not loaded again.
 */
export function insertCode(panel: NotebookPanel, code: string): void {
  const notebook = panel.content;
  const isLoaded = notebook.widgets.some(({ model }) =>
    model.sharedModel.getSource().includes(LOAD)
  );
  const source = isLoaded ? code.replace(`${LOAD}\n`, '') : code;
  const index = notebook.activeCell ? notebook.activeCellIndex + 1 : 0;
  notebook.model?.sharedModel.insertCell(index, makeCodeCell(source));
  notebook.activeCellIndex = index;
  notebook.deselectAll();
  notebook.mode = 'edit';
}
