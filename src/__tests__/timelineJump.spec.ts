import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';

import type { IBand } from '../timeline/bands';
import { jumpTo } from '../timeline/jump';

const BAND: IBand = {
  id: 1,
  pool: 'p1',
  path: 'work/train.ipynb',
  kernelId: 'k1',
  cell: 6,
  start: 10,
  stretches: [{ rank: 0, gpu: null, cell: 6, start: 10, end: 20 }]
};

const cell = (executionCount: number | null, executionState = 'idle') => ({
  model: { type: 'code', executionCount, executionState }
});

/** Jump, with these cells in the notebook; answers the cell and what was said. */
async function jump(
  band: IBand,
  cells: ReturnType<typeof cell>[],
  {
    isOpen = true,
    path = 'work/train.ipynb',
    kernel = 'k1',
    bands = [band]
  } = {}
) {
  const found: unknown[] = [];
  const opened: unknown[] = [];
  const panel = {
    id: 'n1',
    context: { path, ready: Promise.resolve() },
    sessionContext: { session: { kernel: { id: kernel } } },
    content: {
      widgets: cells,
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
    band,
    bands,
    app as unknown as JupyterFrontEnd,
    tracker as unknown as INotebookTracker,
    nullTranslator.load('')
  );
  const said = Notification.manager.notifications.map(({ message }) => message);
  return {
    index: cells.indexOf(found[0] as (typeof cells)[0]),
    opened,
    shown: app.shell.activateById.mock.calls,
    said: said.slice(0, said.length - before)
  };
}

describe('a click on a band', () => {
  it('goes to the cell with its number', async () => {
    const { index, shown, said } = await jump(BAND, [
      cell(4),
      cell(6),
      cell(null)
    ]);
    expect(index).toBe(1);
    expect(shown).toEqual([['n1']]);
    expect(said).toEqual([]);
  });

  it('finds a notebook that was renamed, and a kernel that is another', async () => {
    const renamed = await jump(BAND, [cell(6)], { path: 'work/b.ipynb' });
    expect(renamed.index).toBe(0);
    const restarted = await jump(BAND, [cell(6)], { kernel: 'k2' });
    expect(restarted.index).toBe(0);
  });

  it('goes to the cell that runs: it has no number yet', async () => {
    const band = { ...BAND, stretches: [{ ...BAND.stretches[0], end: null }] };
    const { index } = await jump(band, [cell(6), cell(null, 'running')]);
    expect(index).toBe(1);
  });

  it('opens the notebook if it is closed', async () => {
    const { index, opened } = await jump(BAND, [cell(6)], { isOpen: false });
    expect(opened).toEqual(['work/train.ipynb']);
    expect(index).toBe(0);
  });

  it('goes to no cell of a number that was counted again', async () => {
    const later = (id: number, cell: number, kernelId = 'k1') => ({
      ...BAND,
      ...{ id, cell, kernelId, start: 10 + id }
    });
    const cells = [cell(6)];
    const others = [BAND, later(2, 7), later(3, 2, 'k2')];
    expect((await jump(BAND, cells, { bands: others })).index).toBe(0);
    const bands = [later(-1, 5), BAND, later(2, 7), later(3, 6)];
    const lost = await jump(BAND, cells, { bands });
    expect(lost.index).toBe(-1);
    expect(lost.said[0]).toMatch('Cell numbers have restarted');
    // The last one of that number is the one that is there.
    expect((await jump(bands[3], cells, { bands })).index).toBe(0);
  });

  it('does not choose between cells of the same number', async () => {
    const { index, said } = await jump(BAND, [cell(6), cell(6)]);
    expect(index).toBe(-1);
    expect(said[0]).toMatch('the cell that ran as [6] cannot be found');
  });

  it('says so if the cell is gone, or the notebook', async () => {
    const gone = await jump(BAND, [cell(7)]);
    expect(gone.index).toBe(-1);
    expect(gone.said).toEqual(['Cell [6] is not in train.ipynb any more.']);
    const lost = await jump({ ...BAND, path: 'away/a.ipynb' }, [], {
      isOpen: false
    });
    expect(lost.said[0]).toBe('a.ipynb could not be opened: No such file.');
  });
});
