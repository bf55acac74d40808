import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { CodeCell } from '@jupyterlab/cells';
import { PathExt } from '@jupyterlab/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { endOf } from './bands';
import type { IBand } from './bands';

/** Milliseconds to read a sentence; without them it would not be shown at all. */
const LONG = 5000;

/**
 * Go to a cell in its notebook, which is opened if it is not; say so where that cannot be.
 */
export async function jumpTo(
  band: IBand,
  bands: readonly IBand[],
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  trans: TranslationBundle
): Promise<void> {
  const name = PathExt.basename(band.path);
  let panel: NotebookPanel | null;
  try {
    panel = await openNotebook(band, app, tracker);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    Notification.error(trans.__('%1 could not be opened: %2', name, why), {
      autoClose: LONG
    });
    return;
  }
  if (!panel) {
    Notification.warning(
      name
        ? trans.__('%1 could not be opened.', name)
        : trans.__('The ranks were started without a notebook.'),
      { autoClose: LONG }
    );
    return;
  }
  app.shell.activateById(panel.id);
  const cells = findCells(band, panel);
  const isOld = haveRestarted(band, bands) && endOf(band) !== null;
  if (cells.length !== 1 || isOld) {
    const number = `${band.cell}`;
    Notification.info(
      band.cell === null
        ? trans.__('That cell has no number, so it cannot be found.')
        : cells.length
          ? trans.__(
              'Cell numbers have restarted since then, so the cell that ran as [%1] cannot be found.',
              number
            )
          : trans.__('Cell [%1] is not in %2 any more.', number, name),
      { autoClose: LONG }
    );
    return;
  }
  await panel.content.scrollToCell(cells[0], 'center');
}

async function openNotebook(
  { path, kernelId }: IBand,
  { commands }: JupyterFrontEnd,
  tracker: INotebookTracker
): Promise<NotebookPanel | null> {
  // It may have been renamed since.
  const open =
    (kernelId !== null &&
      tracker.find(
        ({ sessionContext }) => sessionContext.session?.kernel?.id === kernelId
      )) ||
    tracker.find(({ context }) => context.path === path);
  if (open) {
    return open;
  }
  if (!path) {
    return null;
  }
  const panel = await commands.execute('docmanager:open', { path });
  await panel?.context?.ready;
  return tracker.find(one => one === panel) ?? null;
}

/** The cell that runs, or those with the number of a band. */
function findCells(band: IBand, { content }: NotebookPanel): CodeCell[] {
  const cells = content.widgets.filter(
    (cell): cell is CodeCell => cell.model.type === 'code'
  );
  // A cell gets its number when it is done; before that, an old one may have the same.
  const running =
    endOf(band) === null
      ? cells.find(({ model }) => model.executionState === 'running')
      : undefined;
  return running
    ? [running]
    : cells.filter(
        ({ model }) => band.cell !== null && model.executionCount === band.cell
      );
}

/**
 * Whether a kernel counted from the beginning after a band: the numbers of what it ran from then on do
 * not only grow.
 */
function haveRestarted(band: IBand, bands: readonly IBand[]): boolean {
  let last = band.cell ?? 0;
  return bands
    .filter(
      ({ kernelId, start }) => kernelId === band.kernelId && start >= band.start
    )
    .some(({ cell }) => {
      const isLess = cell !== null && cell < last;
      last = cell ?? last;
      return isLess;
    });
}
