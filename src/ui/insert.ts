import type { NotebookPanel } from '@jupyterlab/notebook';

import { LOAD } from '../model/tokens';
import { makeCodeCell } from './codeCell';

const LOADS = new RegExp(`^${LOAD}\\b`, 'm');

/**
 * Put a code cell below the active cell of a notebook, and make it the active one, ready to be edited.
 *
 * What a cell above loads already is not loaded again, unless the code is to run at once: then that
 * cell may not have run yet.
 */
export function insertCode(
  panel: NotebookPanel,
  code: string,
  isToRun = false
): void {
  const notebook = panel.content;
  const index = notebook.activeCell ? notebook.activeCellIndex + 1 : 0;
  const isLoaded = notebook.widgets
    .slice(0, index)
    .some(({ model }) => LOADS.test(model.sharedModel.getSource()));
  const source = isLoaded && !isToRun ? code.replace(`${LOAD}\n`, '') : code;
  notebook.model?.sharedModel.insertCell(index, makeCodeCell(source));
  notebook.activeCellIndex = index;
  notebook.deselectAll();
  notebook.mode = 'edit';
}
