import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { isKernelAttached, poolOf } from '../../model/contract';
import { isPython } from '../../model/notebook';
import { IStartModel } from '../../model/startModel';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ranksIcon } from '../../ui/icons';
import { addToPalette } from '../../ui/palette';
import { quote, startCode } from '../../words/startCode';
import { makeNotebook } from '../launcher/newNotebook';

/**
 * Runs a Python file of the file browser on the ranks of the current notebook, by a cell that says so;
 * without a Python notebook, in a new one beside the file.
 */
export const runFilePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:run-file',
  description: 'Runs Python files from the file browser on ranks.',
  autoStart: true,
  requires: [IPoolsModel, IStartModel],
  optional: [IFileBrowserFactory, INotebookTracker, ICommandPalette],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    model: IPoolsModel,
    start: IStartModel,
    browsers: IFileBrowserFactory | null,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ): void => {
    if (!browsers) {
      return;
    }
    const { contents } = serviceManager;

    /** The one file that is selected, if it is Python. */
    const selected = (): string | null => {
      const items = [
        ...(browsers.tracker.currentWidget?.selectedItems() ?? [])
      ];
      return items.length === 1 && PathExt.extname(items[0].path) === '.py'
        ? items[0].path
        : null;
    };
    /** What starts the ranks of a notebook, unless they run; as was chosen in the form. */
    const starting = async (panel: NotebookPanel | null): Promise<string[]> => {
      const kernel = panel?.sessionContext.session?.kernel?.id ?? '';
      const pool = poolOf(kernel, model.pools.values());
      if (pool?.state === 'RUNNING' && isKernelAttached(pool, kernel)) {
        return [];
      }
      const path = panel?.context.path ?? '';
      const choice = start.isChosen(path)
        ? await start.choice(path, model.defaultRanks)
        : null;
      return [startCode(choice ?? {})];
    };
    const runInNew = async (file: string): Promise<void> => {
      const sources = [
        ...(await starting(null)),
        running(file, PathExt.dirname(file))
      ];
      const path = await makeNotebook(
        serviceManager,
        PathExt.dirname(file),
        sources.map(source => ({ type: 'code', source }))
      );
      const panel: unknown = await commands.execute('docmanager:open', {
        path
      });
      const made = notebooks?.find(one => one === panel);
      // Notebook 7 has it on a page of its own.
      await made?.sessionContext.ready;
      if (made) {
        await commands.execute('notebook:run-all-cells');
      }
    };
    /** The line that runs a file from a notebook in a folder. */
    const running = (file: string, folder: string): string => {
      const path = PathExt.relative(
        contents.localPath(folder),
        contents.localPath(file)
      );
      const word = quote(path.startsWith('-') ? `./${path}` : path);
      if (word === null) {
        throw new Error(
          trans.__('The path contains both kinds of quotation marks.')
        );
      }
      return `%dist_run ${word}`;
    };

    commands.addCommand(CommandIDs.runFile, {
      label: ({ isPalette }) =>
        isPalette
          ? trans.__('Run Selected File on Ranks')
          : trans.__('Run on Ranks'),
      caption: trans.__(
        'Run this Python file on the ranks of the current notebook, in a new cell with %dist_run.'
      ),
      icon: ({ isPalette }) => (isPalette ? undefined : ranksIcon),
      isVisible: () => selected() !== null,
      execute: async () => {
        const file = selected();
        if (file === null) {
          return;
        }
        const panel = notebooks?.currentWidget;
        try {
          if (!panel?.content.model || !isPython(panel.sessionContext)) {
            await runInNew(file);
            return;
          }
          const folder = PathExt.dirname(panel.context.path);
          const lines = [...(await starting(panel)), running(file, folder)];
          await commands.execute(CommandIDs.insertCode, {
            source: lines.join('\n'),
            run: true
          });
        } catch (error) {
          // Menus would say nothing.
          await showErrorMessage(
            trans.__('“%1” cannot be run', file),
            error instanceof Error ? error : String(error)
          );
        }
      }
    });
    addToPalette(palette, [CommandIDs.runFile]);
  }
};
