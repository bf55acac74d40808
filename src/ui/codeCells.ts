import type { ICodeCell } from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { MimeData } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';
import type { PointerEvent as ReactPointerEvent } from 'react';

import { LOAD } from '../model/tokens';

/** A code cell that has not run yet. */
function makeCodeCell(source: string): ICodeCell {
  return {
    cell_type: 'code',
    source,
    // The user put it there, and it has no output that could do harm.
    metadata: { trusted: true },
    execution_count: null,
    outputs: []
  };
}

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

/** What a notebook takes as cells that are dropped into it. */
const CELLS = 'application/vnd.jupyter.cells';
/** Pixels that the pointer must go before a press is a drag. */
const THRESHOLD = 5;

/** A code cell that is dragged into a notebook. */
interface ICodeCellDrag {
  source: string;
  /** What follows the pointer: `Rank 2`. */
  label: string;
}

/**
 * To be called when the pointer is pressed on what can be dragged: once it has moved away, a code cell
 * hangs on it, which every notebook takes. A press that does not move stays a click.
 */
export function startCellDrag(
  event: ReactPointerEvent | PointerEvent,
  cell: ICodeCellDrag
): void {
  // A finger scrolls.
  if (event.button !== 0 || event.pointerType === 'touch') {
    return;
  }
  const { clientX, clientY } = event;
  const onMove = (move: PointerEvent) => {
    const distance = Math.hypot(move.clientX - clientX, move.clientY - clientY);
    if (distance >= THRESHOLD) {
      stop();
      void makeDrag(cell).start(move.clientX, move.clientY);
    }
  };
  const stop = () => {
    document.removeEventListener('pointermove', onMove, true);
    document.removeEventListener('pointerup', stop, true);
    document.removeEventListener('pointercancel', stop, true);
  };
  document.addEventListener('pointermove', onMove, true);
  document.addEventListener('pointerup', stop, true);
  document.addEventListener('pointercancel', stop, true);
}

function makeDrag({ source, label }: ICodeCellDrag): Drag {
  const mimeData = new MimeData();
  mimeData.setData(CELLS, [makeCodeCell(source)]);
  mimeData.setData('text/plain', source);
  const dragImage = document.createElement('div');
  dragImage.className = 'jp-dist-DragImage';
  dragImage.textContent = label;
  return new Drag({
    mimeData,
    dragImage,
    proposedAction: 'copy',
    supportedActions: 'copy'
  });
}
