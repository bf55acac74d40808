import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookContent } from '@jupyterlab/nbformat';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { poolOf } from '../../model/contract';
import type { IPool } from '../../model/contract';
import type { IJobRequest } from '../../model/submitContract';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToPalette } from '../../ui/palette';
import { parametersOf } from './notebookParameters';

/** What can be run as a job. */
const KINDS = ['.py', '.sh', '.ipynb'];

/**
 * Runs the current notebook, or a file of the file browser, as a job: the dialog is filled in with it.
 */
export const runAsJobPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:run-as-job',
  description: 'Runs notebooks and files as jobs.',
  autoStart: true,
  requires: [IPoolsModel],
  optional: [IFileBrowserFactory, INotebookTracker, ICommandPalette],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    model: IPoolsModel,
    browsers: IFileBrowserFactory | null,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ): void => {
    const { contents } = serviceManager;

    /** The one file that is selected, if it can be run. */
    const selected = (): string | null => {
      const items = [
        ...(browsers?.tracker.currentWidget?.selectedItems() ?? [])
      ];
      const path = items.length === 1 ? items[0].path : '';
      return KINDS.includes(PathExt.extname(path)) ? path : null;
    };
    /** As many GPUs as the ranks of a notebook have, or would get. */
    const gpusFor = (kernel: string | undefined): number => {
      const pool = poolOf(kernel, model.pools.values());
      const isLive = pool !== null && pool.ended === null;
      return isLive
        ? countLeased(pool)
        : model.gpus?.gpus.length
          ? (model.defaultRanks ?? 1)
          : 0;
    };
    const kernelId = () =>
      notebooks?.currentWidget?.sessionContext.session?.kernel?.id;
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
        // What runs is the file.
        await save?.();
        const request = await requestFor(path, gpus);
        await commands.execute(CommandIDs.submitJob, {
          request: request as ReadonlyPartialJSONObject
        });
      } catch (error) {
        // Menus would say nothing.
        await showErrorMessage(
          trans.__('“%1” cannot be run as a job', path),
          error instanceof Error ? error : String(error)
        );
      }
    };

    commands.addCommand(CommandIDs.runNotebookAsJob, {
      label: () => {
        const gpus = gpusFor(kernelId());
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
          const count = typeof gpus === 'number' ? gpus : gpusFor(kernelId());
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

/** Also those of ranks that run on the CPU, as their torch has no CUDA. */
function countLeased({ ranks }: IPool): number {
  return new Set(ranks.flatMap(({ gpu }) => (gpu ? [gpu.uuid] : []))).size;
}
