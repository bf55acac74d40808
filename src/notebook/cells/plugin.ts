import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { hasMode, poolOf } from '../../model/contract';
import { isPython } from '../../model/notebook';
import { CommandIDs, IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ranksIcon } from '../../ui/icons';
import { addToPalette } from '../../ui/palette';
import { CellEdges } from './cellEdges';
import { FailureActions } from './failureActions';
import { headLength, MAGIC, toggled, whereRuns } from './magic';

/** Marks cells that run on ranks, toggles this, and offers actions after a failure. */
export const cellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:cells',
  description: 'Marks the cells that run on ranks.',
  autoStart: true,
  requires: [IPoolsModel, INotebookTracker],
  optional: [ICommandPalette],
  activate: (
    { commands },
    model: IPoolsModel,
    tracker: INotebookTracker,
    palette: ICommandPalette | null
  ): void => {
    const command = CommandIDs.toggleDistributed;
    const notify = () => commands.notifyCommandChanged(command);

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
      const failures = new FailureActions({ panel, model, commands });
      warmUpCompletion(panel, model);
      const follow = () => {
        edges.follow();
        failures.follow();
      };
      model.changed.connect(follow, failures);
      model.telemetry.changed.connect(failures.follow, failures);
      panel.sessionContext.kernelChanged.connect(follow);
      panel.disposed.connect(() => Signal.clearData(failures));
    };
    tracker.forEach(addEdges);
    tracker.widgetAdded.connect((_, panel) => addEdges(panel));
    tracker.activeCellChanged.connect(notify);
    tracker.selectionChanged.connect(notify);
  }
};

/** Request a completion when a cell on ranks is edited: the first one imports Jedi there, which is slow. */
export function warmUpCompletion(
  { content, sessionContext }: NotebookPanel,
  model: IPoolsModel
): void {
  const asked = new Set<string>();
  const look = ({ mode, activeCell }: Notebook) => {
    if (mode !== 'edit' || activeCell?.model.type !== 'code') {
      return;
    }
    const kernel = sessionContext.session?.kernel;
    const pool = poolOf(kernel?.id, model.pools.values());
    if (!kernel || pool?.state !== 'RUNNING') {
      return;
    }
    const source = activeCell.model.sharedModel.getSource();
    const where = whereRuns(source, hasMode(pool, kernel.id));
    const key = `${pool.id} ${pool.generation} ${where}`;
    if (where === null || asked.has(key)) {
      return;
    }
    asked.add(key);
    const head = source.slice(0, headLength(source));
    const code = whereRuns(head) === null ? 'torch.' : `${head}\ntorch.`;
    // There may be no answer: the kernel may end.
    kernel
      .requestComplete({ code, cursor_pos: code.length })
      .catch(() => undefined);
  };
  content.stateChanged.connect(look);
  content.activeCellChanged.connect(look);
  content.modelContentChanged.connect(look);
}
