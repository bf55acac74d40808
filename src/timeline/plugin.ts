import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
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

import { Client } from '../model/client';
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

/** A curve over time. */
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
    app: JupyterFrontEnd,
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
          const { model } = widget.content;
          // A layout of another version may name what is not there.
          model.metric = METRICS.find(name => name === metric) ?? model.metric;
          model.minutes = RANGES.find(one => one === minutes) ?? model.minutes;
          const selection = SELECTIONS.find(one => one === gpus);
          model.choose({ selection: selection ?? model.choice.selection });
          await tracker.add(widget);
          const added = widget;
          const describe = () =>
            `${model.metric} ${model.minutes} ${model.choice.selection}`;
          let saved = describe();
          model.optionsChanged.connect(() => {
            const state = describe();
            if (state !== saved) {
              saved = state;
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
      // The launcher knows its sections by what it calls them itself.
      category: translator.load('jupyterlab').__('Other')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command,
        name: () => 'gpu-timeline',
        args: ({ content: { model } }) => ({
          metric: model.metric,
          minutes: model.minutes,
          gpus: model.choice.selection
        })
      });
    }
  }
};
