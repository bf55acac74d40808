import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';

import { hasRanks, isKernelAttached, poolOf } from '../../model/contract';
import { isPython } from '../../model/notebook';
import { IStartModel } from '../../model/startModel';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ranksIcon } from '../../ui/icons';
import { addToPalette } from '../../ui/palette';
import { selectedFile } from '../../ui/files';
import { quote, startCode } from '../../words/startCode';
import { makeNotebook } from '../launcher/newNotebook';

/** Runs a Python file on the ranks of the current notebook, in a new cell, or else in a new notebook. */
export const runFilePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:run-file',
  description: 'Runs Python files from the file browser on ranks.',
  autoStart: true,
  requires: [IPoolsModel, IStartModel],
  optional: [IFileBrowserFactory, INotebookTracker, ICommandPalette],
  activate: (
    { commands, serviceManager },
    model: IPoolsModel,
    start: IStartModel,
    browsers: IFileBrowserFactory | null,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ): void => {
    const { contents } = serviceManager;

    const selected = () =>
      selectedFile(browsers, ({ path }) => PathExt.extname(path) === '.py');
    /** Starts the ranks of a notebook as chosen in the form, unless they run. */
    const starting = async (panel: NotebookPanel | null): Promise<string[]> => {
      const kernel = panel?.sessionContext.session?.kernel?.id ?? '';
      const pool = poolOf(kernel, model.pools.values());
      if (pool && hasRanks(pool) && isKernelAttached(pool, kernel)) {
        return [];
      }
      const path = panel?.context.path ?? '';
      const choice = start.isChosen(path)
        ? await start.choice(path, model.defaultRanks)
        : null;
      return [startCode(choice ?? {})];
    };
    const runInNew = async (file: string): Promise<void> => {
      const folder = PathExt.dirname(file);
      const sources = [...(await starting(null)), running(file, folder)];
      const path = await makeNotebook(
        serviceManager,
        folder,
        sources.map(source => ({ type: 'code', source }))
      );
      const panel: unknown = await commands.execute('docmanager:open', {
        path
      });
      // Notebook 7 opens it in another page.
      const made = notebooks?.find(one => one === panel);
      if (made) {
        await made.sessionContext.ready;
        await commands.execute('notebook:run-all-cells');
      }
    };
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
          const title = trans.__('“%1” cannot be run', file);
          await showErrorMessage(title, error as Error);
        }
      }
    });
    addToPalette(palette, [CommandIDs.runFile]);
  }
};
