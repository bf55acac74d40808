import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookContent } from '@jupyterlab/nbformat';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { poolOf } from '../../model/contract';
import type { IJobRequest } from '../../model/submitContract';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToPalette } from '../../ui/palette';
import { selectedFile } from '../../ui/files';
import { parametersOf } from './notebookParameters';

const KINDS = ['.py', '.sh', '.ipynb'];

/** Opens the dialog for the current notebook, or for a file of the file browser. */
export const runAsJobPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:run-as-job',
  description: 'Runs notebooks and files as jobs.',
  autoStart: true,
  requires: [IPoolsModel],
  optional: [IFileBrowserFactory, INotebookTracker, ICommandPalette],
  activate: (
    { commands, serviceManager },
    model: IPoolsModel,
    browsers: IFileBrowserFactory | null,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ): void => {
    const { contents } = serviceManager;

    const selected = () =>
      selectedFile(browsers, ({ path }) =>
        KINDS.includes(PathExt.extname(path))
      );
    /** The number of GPUs that the notebook's ranks have, or would get. */
    const countGpus = (): number => {
      const context = notebooks?.currentWidget?.sessionContext;
      const pool = poolOf(context?.session?.kernel?.id, model.pools.values());
      if (pool?.ended === null) {
        // Also those of ranks that run on the CPU because their torch has no CUDA.
        return new Set(pool.ranks.flatMap(({ gpu }) => gpu?.uuid ?? [])).size;
      }
      return model.gpus?.gpus.length ? (model.defaultRanks ?? 1) : 0;
    };
    const requestFor = async (
      path: string,
      gpus: number
    ): Promise<IJobRequest> => {
      const local = contents.localPath(path);
      const request: IJobRequest = { chdir: PathExt.dirname(local) };
      if (gpus) {
        request.gpus = gpus;
      }
      switch (PathExt.extname(path)) {
        case '.ipynb': {
          const { content } = await contents.get(path, {
            type: 'notebook',
            content: true
          });
          const parameters = parametersOf(content as INotebookContent);
          request.notebook = local;
          request.parameter = parameters.map(
            ({ name, values }) => `${name}=${values}`
          );
          break;
        }
        case '.py':
          request.command = ['python', PathExt.basename(local)];
          break;
        default:
          request.command = [local];
      }
      return request;
    };
    const ask = async (
      path: string,
      gpus: number,
      save?: () => Promise<void>
    ): Promise<void> => {
      try {
        await save?.();
        const request = await requestFor(path, gpus);
        await commands.execute(CommandIDs.submitJob, {
          request: request as ReadonlyPartialJSONObject
        });
      } catch (error) {
        const title = trans.__('“%1” cannot be run as a job', path);
        await showErrorMessage(title, error as Error);
      }
    };

    commands.addCommand(CommandIDs.runNotebookAsJob, {
      label: () => {
        const gpus = countGpus();
        return gpus
          ? trans._n('Run as Job on %1 GPU…', 'Run as Job on %1 GPUs…', gpus)
          : trans.__('Run as Job…');
      },
      caption: trans.__(
        'Save this notebook, and queue a copy of it; it starts when its GPUs are free.'
      ),
      isEnabled: () => Boolean(notebooks?.currentWidget?.content.model),
      execute: async ({ gpus }) => {
        const panel = notebooks?.currentWidget;
        if (panel) {
          const { context } = panel;
          const save = () =>
            context.model.dirty ? context.save() : Promise.resolve();
          const count = typeof gpus === 'number' ? gpus : countGpus();
          await ask(context.path, count, save);
        }
      }
    });
    commands.addCommand(CommandIDs.runFileAsJob, {
      label: ({ isPalette }) =>
        isPalette
          ? trans.__('Run Selected File as Job…')
          : trans.__('Run as Job…'),
      caption: trans.__(
        'Queue this script or notebook; it starts when its GPUs are free.'
      ),
      isVisible: () => selected() !== null,
      execute: async () => {
        const path = selected();
        if (path !== null) {
          await ask(path, model.gpus?.gpus.length ? 1 : 0);
        }
      }
    });
    addToPalette(palette, [
      CommandIDs.runNotebookAsJob,
      CommandIDs.runFileAsJob
    ]);
    const notify = () =>
      commands.notifyCommandChanged(CommandIDs.runNotebookAsJob);
    model.changed.connect(notify);
    notebooks?.currentChanged.connect(notify);
  }
};
