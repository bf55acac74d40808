import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { PathExt } from '@jupyterlab/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { ICellRun } from '../model/cells';
import { trans } from '../model/trans';
import { notify } from '../ui/notify';

/** Milliseconds to read a sentence; without them it would not be shown at all. */
const LONG = 5000;

/**
 * Go to a cell in its notebook, which is opened if it is not; say so where that cannot be.
 */
export async function jumpTo(
  run: ICellRun,
  app: JupyterFrontEnd,
  tracker: INotebookTracker
): Promise<void> {
  const name = PathExt.basename(run.name);
  let panel: NotebookPanel | null;
  try {
    panel = await openNotebook(run, app, tracker);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const words = trans.__('%1 could not be opened: %2', name, why);
    notify(words, 'error', { autoClose: LONG });
    return;
  }
  if (!panel) {
    notify(
      name
        ? trans.__('%1 could not be opened.', name)
        : trans.__('The ranks were started without a notebook.'),
      'warning',
      { autoClose: LONG }
    );
    return;
  }
  app.shell.activateById(panel.id);
  // Its number may be another cell's by now: a kernel that is restarted counts anew.
  const { widgets, model } = panel.content;
  const cell =
    widgets.find(({ model }) => model.id === run.cell_id) ??
    // Notebooks had no ids before format 4.5: JupyterLab makes up others whenever it opens them.
    ((model?.nbformatMinor ?? 5) < 5
      ? widgets.find(
          ({ model }) =>
            run.cell !== null &&
            (model as ICodeCellModel).executionCount === run.cell
        )
      : undefined);
  if (cell) {
    await panel.content.scrollToCell(cell, 'center');
    return;
  }
  notify(
    run.cell === null
      ? trans.__('That cell is not in %1.', name)
      : trans.__('Cell [%1] is not in %2 any more.', `${run.cell}`, name),
    'info',
    { autoClose: LONG }
  );
}

async function openNotebook(
  { name: path, kernel_id: kernelId }: ICellRun,
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
    // A page that is loaded again has the notebook before its cells.
    await open.context.ready;
    return open;
  }
  if (!path) {
    return null;
  }
  const panel = await commands.execute('docmanager:open', { path });
  await panel?.context?.ready;
  return tracker.find(one => one === panel) ?? null;
}
