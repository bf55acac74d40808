import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  ICommandPalette,
  IThemeManager,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { Client } from '../model/restClient';
import { trans } from '../model/trans';
import { addToShell } from '../ui/addToShell';
import { addToPalette } from '../ui/palette';
import { CommandIDs, ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { jumpTo } from './jump';
import { METRICS, RANGES } from './metrics';
import { TimelineModel } from './model';
import { SELECTIONS } from './selection';
import { Timeline } from './timeline';
import { fillToolbar } from './toolbar';

const timelineIcon = new LabIcon({
  name: 'jupyter-dist-server:timeline',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" d="M3 3h2v16h16v2H3zM7 17V13l4-6 4 4 5-6v12z"/>
</svg>`
});

/**
 * Offers the timeline of the GPUs in the main area, or below or beside a notebook that has a page of
 * its own; one at a time.
 */
export const timelinePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:timeline',
  description:
    'Shows utilization, memory, power and temperature of the GPUs over time.',
  autoStart: true,
  requires: [IPoolsModel, ICurrentNotebook, ITranslator, INotebookTracker],
  optional: [
    ILauncher,
    ILayoutRestorer,
    IThemeManager,
    ILabShell,
    ICommandPalette
  ],
  activate: (
    app,
    pools: IPoolsModel,
    current: ICurrentNotebook,
    translator: ITranslator,
    notebooks: INotebookTracker,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    themes: IThemeManager | null,
    labShell: ILabShell | null,
    palette: ICommandPalette | null
  ): void => {
    const client = new Client(app.serviceManager.serverSettings);
    const tracker = new WidgetTracker<MainAreaWidget<Timeline>>({
      namespace: 'jupyter-dist-timeline'
    });
    const command = CommandIDs.openTimeline;

    const make = (): MainAreaWidget<Timeline> => {
      const model = new TimelineModel(pools, current, client);
      const content = new Timeline(model, themes, cell => {
        void jumpTo(cell, app, notebooks);
      });
      const widget = new MainAreaWidget({ content });
      widget.id = 'jupyter-dist-timeline';
      widget.title.label = trans.__('GPU Timeline');
      widget.title.icon = timelineIcon;
      widget.title.closable = true;
      fillToolbar(widget.toolbar, content);
      return widget;
    };

    app.commands.addCommand(command, {
      label: trans.__('GPU Timeline'),
      caption: trans.__(
        'Show utilization, memory, power and temperature of the GPUs over time.'
      ),
      icon: timelineIcon,
      execute: async ({ metric, minutes, gpus }) => {
        let widget = tracker.currentWidget;
        if (!widget) {
          widget = make();
          const added = widget;
          const { model } = widget.content;
          const { choice } = model;
          // The layout may come from another version.
          model.choose({
            metric: METRICS.find(one => one === metric) ?? choice.metric,
            minutes: RANGES.find(one => one === minutes) ?? choice.minutes,
            selection: SELECTIONS.find(one => one === gpus) ?? choice.selection
          });
          await tracker.add(added);
          let saved = model.choice;
          model.optionsChanged.connect(() => {
            if (model.choice !== saved) {
              saved = model.choice;
              void tracker.save(added);
            }
          });
        }
        addToShell(app.shell, labShell, widget);
        app.shell.activateById(widget.id);
        return widget;
      }
    });
    addToPalette(palette, [command]);
    launcher?.add({
      command,
      // The launcher identifies its sections by JupyterLab's translation.
      category: translator.load('jupyterlab').__('Other')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command,
        name: () => 'gpu-timeline',
        args: ({ content }) => {
          const { metric, minutes, selection } = content.model.choice;
          return { metric, minutes, gpus: selection };
        }
      });
    }
  }
};
