import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { addToShell } from '../../ui/addToShell';
import { Clock } from '../../ui/clock';
import { ranksIcon } from '../../ui/icons';
import { JobDetails } from './jobDetails';
import type { IJobDetailsProps } from './jobDetails';

/**
 * Shows a job, and what it prints, in a tab of the main area.
 */
export const detailsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:job-details',
  description: 'Shows single jobs of the queue in tabs.',
  autoStart: true,
  requires: [IPoolsModel, IRenderMimeRegistry],
  optional: [ILayoutRestorer, ILabShell],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    model: IPoolsModel,
    { sanitizer }: IRenderMimeRegistry,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null
  ): void => {
    const tracker = new WidgetTracker<MainAreaWidget<JobWidget>>({
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
        let widget = tracker.find(({ content }) => content.job === job);
        if (!widget) {
          const content = new JobWidget({
            ...{ job, model, commands, sanitizer }
          });
          widget = new MainAreaWidget({ content });
          widget.id = `jupyter-dist-job-${job}`;
          widget.title.icon = ranksIcon;
          widget.title.closable = true;
          widget.toolbar.hide();
          await tracker.add(widget);
        }
        addToShell(shell, labShell, widget);
        shell.activateById(widget.id);
      }
    });
    void restorer?.restore(tracker, {
      command: CommandIDs.openJob,
      args: ({ content }) => ({ job: content.job }),
      name: ({ content }) => content.job
    });
  }
};

/** The tab of one job. */
export class JobWidget extends ReactWidget {
  constructor(
    private readonly _props: Omit<IJobDetailsProps, 'onName' | 'clock'>
  ) {
    super();
    this.addClass('jp-dist-JobWidget');
    this._onName(_props.job);
  }

  get job(): string {
    return this._props.job;
  }

  protected render(): JSX.Element {
    return (
      <JobDetails {...this._props} clock={this._clock} onName={this._onName} />
    );
  }

  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._follow(this.isVisible);
  }

  protected onAfterShow(): void {
    this._follow(true);
  }

  protected onAfterHide(): void {
    this._follow(false);
  }

  protected onBeforeDetach(msg: Message): void {
    this._follow(false);
    super.onBeforeDetach(msg);
  }

  /** All of the queue is read at each of its changes: only while it can be seen. */
  private _follow(isVisible: boolean): void {
    this._clock.isOn = isVisible;
    if (isVisible) {
      this._watching ??= this._props.model.queue.watch('all');
    } else {
      this._watching?.dispose();
      this._watching = null;
    }
  }

  private readonly _onName = (name: string): void => {
    this.title.label = trans.__('Job %1', name);
  };

  private readonly _clock = new Clock();
  private _watching: IDisposable | null = null;
}
