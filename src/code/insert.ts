import type { NotebookPanel } from '@jupyterlab/notebook';

import { makeCodeCell } from './cell';

/**
 * Put a code cell below the active cell of a notebook, and make it the active one, ready to be edited.
 */
export function insertCode(panel: NotebookPanel, source: string): void {
  const notebook = panel.content;
  const index = notebook.activeCell ? notebook.activeCellIndex + 1 : 0;
  notebook.model?.sharedModel.insertCell(index, makeCodeCell(source));
  notebook.activeCellIndex = index;
  notebook.deselectAll();
  notebook.mode = 'edit';
}
