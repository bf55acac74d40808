import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { hasMode, poolOf } from '../../model/contract';
import { isPython } from '../../model/notebook';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ranksIcon } from '../../ui/icons';
import { addToPalette } from '../../ui/palette';
import { CellEdges } from './cellEdges';
import { FailureActions } from './failureActions';
import { MAGIC, toggled, whereRuns } from './magic';
import { warmUpCompletion } from './warmUp';

/**
 * Marks the cells that run on ranks, and lets the user say which those are.
 */
export const cellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:cells',
  description: 'Marks the cells that run on ranks.',
  autoStart: true,
  requires: [IPoolsModel, INotebookTracker],
  optional: [ICommandPalette],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IPoolsModel,
    tracker: INotebookTracker,
    palette: ICommandPalette | null
  ): void => {
    const command = CommandIDs.toggleDistributed;
    const notify = () => commands.notifyCommandChanged(command);

    /** The selected code cells of the current notebook, if they are Python. */
    const sources = () => {
      const panel = tracker.currentWidget;
      if (!panel || !isPython(panel.sessionContext)) {
        return [];
      }
      const notebook = panel.content;
      return notebook.widgets
        .filter(cell => notebook.isSelectedOrActive(cell))
        .filter(({ model }) => model.type === 'code')
        .map(({ model }) => model.sharedModel);
    };
    const isOnRanks = () => {
      const all = sources();
      return (
        all.length > 0 &&
        all.every(cell => whereRuns(cell.getSource()) !== null)
      );
    };

    commands.addCommand(command, {
      label: args =>
        args.isPalette
          ? trans.__('Toggle %1', MAGIC)
          : args.toolbar
            ? ''
            : trans.__('Run on Ranks'),
      caption: trans.__('Add or remove %%distributed in the selected cells.'),
      icon: args => (args.toolbar ? ranksIcon : undefined),
      isEnabled: () => sources().length > 0,
      isVisible: args => !args.toolbar || sources().length > 0,
      isToggleable: true,
      isToggled: isOnRanks,
      execute: () => {
        const isOn = isOnRanks();
        for (const cell of sources()) {
          const source = cell.getSource();
          if ((whereRuns(source) !== null) === isOn) {
            const { end, start } = toggled(source);
            cell.updateSource(0, end, start);
          }
        }
      }
    });

    addToPalette(palette, [command]);
    const addEdges = (panel: NotebookPanel) => {
      const isMode = () => {
        const kernel = panel.sessionContext.session?.kernel?.id;
        return hasMode(poolOf(kernel, model.pools.values()), kernel);
      };
      const edges = new CellEdges(panel.content, isMode, notify);
      const options = { panel, model, commands };
      const failures = new FailureActions(options);
      warmUpCompletion(panel, model);
      const follow = () => {
        edges.follow();
        failures.follow();
      };
      model.changed.connect(follow);
      model.telemetry.changed.connect(failures.follow, failures);
      panel.sessionContext.kernelChanged.connect(follow);
      panel.disposed.connect(() => {
        model.changed.disconnect(follow);
        model.telemetry.changed.disconnect(failures.follow, failures);
      });
    };
    tracker.forEach(addEdges);
    tracker.widgetAdded.connect((_, panel) => addEdges(panel));
    tracker.activeCellChanged.connect(notify);
    tracker.selectionChanged.connect(notify);
  }
};
