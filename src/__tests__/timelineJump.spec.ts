import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';

import type { ICellRun } from '../model/cells';
import { jumpTo } from '../timeline/jump';
import { makeCell } from './gpuSamples';

const RUN: ICellRun = {
  ...makeCell('a', [[10, 20]], { cell: 6, cell_id: 'six' }),
  name: 'work/train.ipynb',
  start: 10,
  end: 20
};

const cell = (id: string, executionCount: number | null = null) => ({
  model: { type: 'code', id, executionCount }
});

/** Jump, with these cells in the notebook; answers the cell and what was said. */
async function jump(
  run: ICellRun,
  cells: ReturnType<typeof cell>[],
  {
    isOpen = true,
    isLoaded = true,
    path = 'work/train.ipynb',
    kernel = 'k1'
  } = {}
) {
  const found: unknown[] = [];
  const opened: unknown[] = [];
  const widgets = isLoaded ? cells : [];
  const load = async () => {
    if (!isLoaded) {
      await new Promise(resolve => setTimeout(resolve));
      widgets.push(...cells);
    }
  };
  const panel = {
    id: 'n1',
    context: { path, ready: load() },
    sessionContext: { session: { kernel: { id: kernel } } },
    content: {
      widgets,
      scrollToCell: async (cell: unknown) => found.push(cell)
    }
  };
  const panels = isOpen ? [panel] : [];
  const tracker = {
    find: (is: (one: typeof panel) => boolean) => panels.find(is)
  };
  const app = {
    commands: {
      execute: async (_: string, { path }: { path: string }) => {
        if (!path.startsWith('work/')) {
          throw new Error('No such file.');
        }
        opened.push(path);
        panels.push(panel);
        return panel;
      }
    },
    shell: { activateById: jest.fn() }
  };
  const before = Notification.manager.notifications.length;
  await jumpTo(
    run,
    app as unknown as JupyterFrontEnd,
    tracker as unknown as INotebookTracker
  );
  const said = Notification.manager.notifications.map(({ message }) => message);
  return {
    index: cells.indexOf(found[0] as (typeof cells)[0]),
    opened,
    shown: app.shell.activateById.mock.calls,
    said: said.slice(0, said.length - before)
  };
}

describe('a click on a cell', () => {
  it('goes to the cell with its id, whatever its number is now', async () => {
    const { index, shown, said } = await jump(RUN, [
      cell('four', 6),
      cell('six', 1),
      cell('new')
    ]);
    expect(index).toBe(1);
    expect(shown).toEqual([['n1']]);
    expect(said).toEqual([]);
  });

  it('finds a notebook that was renamed, and a kernel that is another', async () => {
    const cells = [cell('six')];
    const renamed = await jump(RUN, cells, { path: 'work/b.ipynb' });
    expect(renamed.index).toBe(0);
    const restarted = await jump(RUN, cells, { kernel: 'k2' });
    expect(restarted.index).toBe(0);
  });

  it('opens the notebook if it is closed', async () => {
    const { index, opened } = await jump(RUN, [cell('six')], {
      isOpen: false
    });
    expect(opened).toEqual(['work/train.ipynb']);
    expect(index).toBe(0);
  });

  it('waits for the cells of a notebook that comes back with the page', async () => {
    const { index, said } = await jump(RUN, [cell('six')], {
      isLoaded: false
    });
    expect(said).toEqual([]);
    expect(index).toBe(0);
  });

  it('says so if the cell is gone, or the notebook', async () => {
    const gone = await jump(RUN, [cell('seven', 6)]);
    expect(gone.index).toBe(-1);
    expect(gone.said).toEqual(['Cell [6] is not in train.ipynb any more.']);
    const unnamed = { ...RUN, cell: null, cell_id: null };
    const { said } = await jump(unnamed, [cell('six')]);
    expect(said).toEqual(['That cell is not in train.ipynb.']);
    const lost = await jump({ ...RUN, name: 'away/a.ipynb' }, [], {
      isOpen: false
    });
    expect(lost.said[0]).toBe('a.ipynb could not be opened: No such file.');
  });
});
