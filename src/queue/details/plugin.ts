import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  MainAreaWidget,
  showErrorMessage,
  WidgetTracker
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';

import { ApiError } from '../../model/restClient';
import { ENDED } from '../../model/queueContract';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToShell } from '../../ui/addToShell';
import { ranksIcon } from '../../ui/icons';
import { JobWidget } from './jobDetails';
import { LiveNotebook, NotebookHead } from './liveNotebook';

const NOTEBOOK = 'jupyter-dist-job-notebook-';

/** Shows jobs, and the notebooks that they write, in tabs of the main area. */
export const detailsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:job-details',
  description: 'Shows single jobs of the queue, and their notebooks, in tabs.',
  autoStart: true,
  requires: [
    IPoolsModel,
    NotebookPanel.IContentFactory,
    IRenderMimeRegistry,
    ITranslator
  ],
  optional: [ILayoutRestorer, ILabShell],
  activate: (
    { commands, serviceManager, shell },
    model: IPoolsModel,
    contentFactory: NotebookPanel.IContentFactory,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null
  ): void => {
    const { queue } = model;
    const { sanitizer } = rendermime;
    const jobs = new WidgetTracker<MainAreaWidget<JobWidget>>({
      namespace: 'jupyter-dist-jobs'
    });
    commands.addCommand(CommandIDs.openJob, {
      label: trans.__('Show Details'),
      caption: trans.__('Show this job, and what it prints.'),
      isVisible: ({ job }) => typeof job === 'string',
      execute: async ({ job }) => {
        if (typeof job !== 'string') {
          return;
        }
        let widget = jobs.find(({ content }) => content.job === job);
        if (!widget) {
          const content = new JobWidget({
            ...{ job, model, commands, sanitizer }
          });
          widget = new MainAreaWidget({ content });
          widget.id = `jupyter-dist-job-${job}`;
          widget.title.icon = ranksIcon;
          widget.title.closable = true;
          widget.toolbar.hide();
          await jobs.add(widget);
        }
        addToShell(shell, labShell, widget);
        shell.activateById(widget.id);
      }
    });
    void restorer?.restore(jobs, {
      command: CommandIDs.openJob,
      args: ({ content }) => ({ job: content.job }),
      name: ({ content }) => content.job
    });

    const notebooks = new WidgetTracker<MainAreaWidget<LiveNotebook>>({
      namespace: 'jupyter-dist-job-notebooks'
    });
    const openFile = (path: string) =>
      commands.execute('docmanager:open', { path });
    const make = (job: string, path: string): MainAreaWidget<LiveNotebook> => {
      const { contents } = serviceManager;
      const hasEnded = () =>
        queue.requests.jobDetails(job).then(
          details => ENDED.includes(details.job.state),
          // It was deleted; after another error, it may still run.
          error => error instanceof ApiError && error.status === 404
        );
      const content = new LiveNotebook({
        ...{ path, contents, hasEnded, rendermime, contentFactory, translator }
      });
      const widget = new MainAreaWidget({ content });
      widget.id = `${NOTEBOOK}${job}`;
      widget.title.label = PathExt.basename(path);
      widget.title.caption = trans.__('Notebook of job %1', job);
      widget.title.icon = notebookIcon;
      widget.title.closable = true;
      widget.toolbar.hide();
      const head = new NotebookHead(job, () => {
        void openFile(path);
        widget.dispose();
      });
      widget.contentHeader.addWidget(head);
      content.stateChanged.connect((_, state) => head.tell(state));
      queue.happened.connect((_, events) => {
        for (const { label, state } of events) {
          if (label === job && state === 'RUNNING') {
            content.follow();
          }
        }
      }, content);
      return widget;
    };
    commands.addCommand(CommandIDs.openJobNotebook, {
      label: trans.__('Open Notebook'),
      caption: trans.__('Show the notebook that this job writes.'),
      isVisible: ({ job }) => typeof job === 'string',
      execute: async ({ job, restored }) => {
        if (typeof job !== 'string') {
          return;
        }
        try {
          const { notebook, job: now } = await queue.requests.jobDetails(job);
          if (notebook === null) {
            if (restored) {
              throw new Error('It has no notebook.');
            }
            return;
          }
          let widget = notebooks.find(({ id }) => id === `${NOTEBOOK}${job}`);
          // When the page is reloaded, no file is opened instead of the tab.
          if (!widget && !restored && ENDED.includes(now.state)) {
            await openFile(notebook);
            return;
          }
          if (!widget) {
            widget = make(job, notebook);
            await notebooks.add(widget);
            addToShell(shell, labShell, widget);
          } else {
            widget.content.follow();
          }
          shell.activateById(widget.id);
        } catch (error) {
          if (restored) {
            throw error; // the tab is forgotten
          }
          const title = trans.__(
            'The notebook of job %1 could not be opened',
            job
          );
          await showErrorMessage(title, error as Error);
        }
      }
    });
    void restorer?.restore(notebooks, {
      command: CommandIDs.openJobNotebook,
      args: ({ id }) => ({ job: id.slice(NOTEBOOK.length), restored: true }),
      name: ({ id }) => id
    });
  }
};
