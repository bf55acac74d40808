import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Notification } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { PathExt } from '@jupyterlab/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { ICellRun } from '../model/cells';
import { trans } from '../model/trans';
import { notify } from '../ui/notify';

export async function jumpTo(
  run: ICellRun,
  app: JupyterFrontEnd,
  tracker: INotebookTracker
): Promise<void> {
  const name = PathExt.basename(run.name);
  const say = (words: string, type: Notification.TypeOptions) =>
    notify(words, type, { autoClose: 5000 });
  let panel: NotebookPanel | null;
  try {
    panel = await openNotebook(run, app, tracker);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(trans.__('%1 could not be opened: %2', name, why), 'error');
    return;
  }
  if (!panel) {
    say(
      name
        ? trans.__('%1 could not be opened.', name)
        : trans.__('The ranks were started without a notebook.'),
      'warning'
    );
    return;
  }
  app.shell.activateById(panel.id);
  const { widgets, model } = panel.content;
  // The number may be another cell's after a restart of the kernel. But before format 4.5, cells had no
  // IDs, and JupyterLab assigns new ones each time it opens the notebook.
  const isOld = (model?.nbformatMinor ?? 5) < 5;
  const hasNumber = (cell: ICodeCellModel) =>
    run.cell !== null && cell.executionCount === run.cell;
  const cell =
    widgets.find(({ model }) => model.id === run.cell_id) ??
    widgets.find(({ model }) => isOld && hasNumber(model as ICodeCellModel));
  if (cell) {
    await panel.content.scrollToCell(cell, 'center');
    return;
  }
  say(
    run.cell === null
      ? trans.__('That cell is not in %1.', name)
      : trans.__('Cell [%1] is not in %2 any more.', `${run.cell}`, name),
    'info'
  );
}

async function openNotebook(
  { name: path, kernel_id: kernelId }: ICellRun,
  { commands }: JupyterFrontEnd,
  tracker: INotebookTracker
): Promise<NotebookPanel | null> {
  const hasKernel = ({ sessionContext }: NotebookPanel) =>
    sessionContext.session?.kernel?.id === kernelId;
  const open =
    // It may have been renamed since.
    (kernelId !== null && tracker.find(hasKernel)) ||
    tracker.find(({ context }) => context.path === path);
  if (open) {
    // After a reload of the page, cells come after the notebook.
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
