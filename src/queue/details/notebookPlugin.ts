import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
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

import { ApiError } from '../../model/client';
import { ENDED } from '../../model/queueContract';
import type { IJobEvent } from '../../model/queueContract';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToShell } from '../../ui/addToShell';
import { LiveNotebook } from './liveNotebook';
import { NotebookHead } from './notebookHead';

/**
 * Shows the notebook of a job that runs, and opens that of one that has ended.
 */
export const jobNotebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:job-notebook',
  description: 'Shows the notebooks that jobs write.',
  autoStart: true,
  requires: [
    IPoolsModel,
    NotebookPanel.IContentFactory,
    IRenderMimeRegistry,
    ITranslator
  ],
  optional: [ILayoutRestorer, ILabShell],
  activate: (
    { commands, serviceManager, shell }: JupyterFrontEnd,
    { queue }: IPoolsModel,
    contentFactory: NotebookPanel.IContentFactory,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null
  ): void => {
    const tracker = new WidgetTracker<MainAreaWidget<LiveNotebook>>({
      namespace: 'jupyter-dist-job-notebooks'
    });
    const idOf = (job: string) => `jupyter-dist-job-notebook-${job}`;
    const openFile = (path: string) =>
      commands.execute('docmanager:open', { path });

    const make = (job: string, path: string): MainAreaWidget<LiveNotebook> => {
      const { contents } = serviceManager;
      const hasEnded = () =>
        queue.requests.jobDetails(job).then(
          details => ENDED.includes(details.job.state),
          // It is gone, or else the server does not respond now.
          error => error instanceof ApiError && error.status === 404
        );
      const content = new LiveNotebook({
        ...{ path, contents, hasEnded, rendermime, contentFactory, translator }
      });
      const widget = new MainAreaWidget({ content });
      widget.id = idOf(job);
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
      const onHappened = (_: unknown, events: readonly IJobEvent[]) => {
        if (
          events.some(
            ({ label, state }) => label === job && state === 'RUNNING'
          )
        ) {
          content.follow();
        }
      };
      queue.happened.connect(onHappened);
      widget.disposed.connect(() => queue.happened.disconnect(onHappened));
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
          let widget = tracker.find(({ id }) => id === idOf(job));
          // Not at each load of the page: a tab that is restored stays what it was.
          if (!widget && !restored && ENDED.includes(now.state)) {
            await openFile(notebook);
            return;
          }
          if (!widget) {
            widget = make(job, notebook);
            await tracker.add(widget);
            addToShell(shell, labShell, widget);
          } else {
            widget.content.follow();
          }
          shell.activateById(widget.id);
        } catch (error) {
          if (restored) {
            // Nobody asked for it now; the tab is forgotten.
            throw error;
          }
          // Buttons would say nothing.
          await showErrorMessage(
            trans.__('The notebook of job %1 could not be opened', job),
            error instanceof Error ? error : String(error)
          );
        }
      }
    });
    void restorer?.restore(tracker, {
      command: CommandIDs.openJobNotebook,
      args: ({ id }) => ({ job: id.slice(idOf('').length), restored: true }),
      name: ({ id }) => id
    });
  }
};
