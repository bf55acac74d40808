import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { cellsPlugin } from '../notebook/cells/plugin';
import { CurrentNotebook } from '../model/notebook';
import { replayPlugin } from '../outputs/replay';
import { RanksButton } from '../notebook/toolbar/ranksButton';
import { emitChanged, makeModel, makeStart } from './samples';

/** A notebook without cells, and what is put into its toolbar. */
class FakeNotebook extends Widget {
  readonly content = Object.assign(new Widget(), {
    model: null,
    widgets: [],
    modelChanged: new Signal({}),
    modelContentChanged: new Signal({}),
    stateChanged: new Signal({}),
    activeCellChanged: new Signal({})
  });
  readonly sessionContext = {
    path: 'a.ipynb',
    session: { kernel: { id: 'k1', name: 'python3' } },
    specsManager: { specs: null },
    kernelChanged: new Signal({}),
    propertyChanged: new Signal({}),
    disposed: new Signal({})
  };

  dispose(): void {
    this.content.dispose();
    super.dispose();
    // As JupyterLab's own context does.
    Object.values(this.sessionContext).forEach(value => {
      if (value instanceof Signal) {
        Signal.clearData(value.sender);
      }
    });
  }
}

it('notebooks that were closed are not told of pools any more', () => {
  let reads = 0;
  const model = makeModel();
  Object.defineProperty(model, 'pools', {
    get: () => {
      reads++;
      return new Map();
    }
  });
  const tracker = {
    currentWidget: null as FakeNotebook | null,
    currentChanged: new Signal<object, unknown>({}),
    widgetAdded: new Signal<object, unknown>({}),
    activeCellChanged: new Signal({}),
    selectionChanged: new Signal({}),
    forEach: () => undefined
  };
  const commands = new CommandRegistry();
  const app = { commands } as JupyterFrontEnd;
  const notebooks = tracker as unknown as INotebookTracker;
  void cellsPlugin.activate(app, model, notebooks);
  void replayPlugin.activate(app, notebooks, model);
  const follower = new CurrentNotebook(notebooks, model);
  const told = jest.fn();
  follower.changed.connect(told);
  /** How much one change of the pools makes the plugins read. */
  const cost = () => {
    const before = reads;
    emitChanged(model);
    return reads - before;
  };
  const start = makeStart(model);
  const atFirst = cost();

  const open = [...Array(50)].map(() => {
    const panel = new FakeNotebook();
    tracker.currentWidget = panel;
    tracker.widgetAdded.emit(panel);
    tracker.currentChanged.emit(panel);
    const button = new RanksButton({
      panel: panel as unknown as NotebookPanel,
      ...{ model, start, commands, makeCurrent: () => undefined }
    });
    return { panel, button };
  });
  const whileOpen = cost();
  for (const { panel, button } of open) {
    button.dispose();
    panel.dispose();
  }
  tracker.currentWidget = null;
  tracker.currentChanged.emit(null);
  expect(whileOpen).toBeGreaterThanOrEqual(atFirst + 50);
  expect(cost()).toBe(atFirst);

  told.mockClear();
  open.forEach(({ panel }) => panel.sessionContext.kernelChanged.emit(null));
  expect(told).not.toHaveBeenCalled();
});
