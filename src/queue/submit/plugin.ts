import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Clipboard, ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';

import { ApiError } from '../../model/restClient';
import type { IJobs } from '../../model/queueContract';
import type { IJobRequest, ISubmitSchema } from '../../model/submitContract';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { notify } from '../../ui/notify';
import { addToPalette } from '../../ui/palette';
import { joinSentences } from '../../words/format';
import { jobCommand, saySubmitted } from '../../words/submitWords';
import { askForJobs } from './submitDialog';

/** Submits jobs with a dialog, whose fields come from the server. */
export const submitPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:submit-job',
  description: 'Submits jobs to the queue.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook],
  optional: [IDefaultFileBrowser, ICommandPalette],
  activate: (
    { commands, serviceManager },
    model: IPoolsModel,
    current: ICurrentNotebook,
    browser: IDefaultFileBrowser | null,
    palette: ICommandPalette | null
  ): void => {
    const { contents } = serviceManager;
    const { requests } = model.queue;

    const tell = ({ jobs, notices = [] }: IJobs): void => {
      const [job] = jobs;
      const action =
        jobs.length === 1
          ? {
              label: trans.__('Show Details'),
              callback: () =>
                void commands.execute(CommandIDs.openJob, { job: job.label })
            }
          : {
              label: trans.__('Show Queue'),
              callback: () => void commands.execute(CommandIDs.showQueue)
            };
      notify(joinSentences([saySubmitted(jobs), ...notices]), 'success', {
        autoClose: 10_000,
        actions: [action]
      });
    };

    commands.addCommand(CommandIDs.submitJob, {
      label: trans.__('Submit a Job…'),
      caption: trans.__(
        'Queue a command, a script or a notebook; it starts when its GPUs are free.'
      ),
      isEnabled: () => model.connection.state === 'live',
      execute: async args => {
        const request = (args.request as IJobRequest | undefined) ?? {
          chdir: contents.localPath(browser?.model.path ?? '')
        };
        const gpus = model.gpus?.gpus ?? [];
        const folder = current.notebook
          ? PathExt.dirname(contents.localPath(current.notebook.path))
          : null;
        const insert = {
          label:
            folder === null
              ? trans.__('Copy as Command')
              : trans.__('Insert as Command'),
          execute: (request: IJobRequest, schema: ISubmitSchema) => {
            const source = jobCommand(request, schema, folder ?? '');
            if (folder === null) {
              Clipboard.copyToSystem(source);
            } else {
              // After an exclamation mark, IPython would replace braces.
              void commands.execute(CommandIDs.insertCode, {
                source: `%%bash\n${source}`
              });
            }
          }
        };
        const schema = requests.submitSchema();
        try {
          const jobs = await askForJobs({
            ...{ schema, request, gpus, requests, insert }
          });
          if (jobs) {
            tell(jobs);
          }
        } catch (error) {
          if (!(error instanceof ApiError)) {
            throw error;
          }
          const words = joinSentences([error.message, error.hint]);
          notify(words, 'error', { autoClose: false });
        }
      }
    });
    addToPalette(palette, [CommandIDs.submitJob]);
    model.changed.connect(() =>
      commands.notifyCommandChanged(CommandIDs.submitJob)
    );
  }
};
