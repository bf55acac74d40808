import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';

import { runFilePlugin } from '../notebook/code/runFile';
import type { IPool } from '../model/contract';
import { CommandIDs } from '../model/tokens';
import { dialog, dialogSays, makeModel, makePool, makeStart } from './samples';

const START = '%load_ext jupyter_dist_server\n%dist_init';

interface IOptions {
  selected?: string[];
  /** Of the current notebook; without one there is none. */
  notebook?: string;
  kernel?: string;
  pool?: IPool | null;
}

/** The command, where these files are selected. */
function make({
  selected = ['work/train.py'],
  notebook = 'work/a.ipynb',
  kernel = 'python3',
  pool = makePool()
}: IOptions = {}) {
  const commands = new CommandRegistry();
  const executed: unknown[] = [];
  const made = {
    sessionContext: { ready: Promise.resolve() }
  };
  for (const id of [
    CommandIDs.insertCode,
    'docmanager:open',
    'notebook:run-all-cells'
  ]) {
    commands.addCommand(id, {
      execute: args => {
        executed.push({ id, ...args });
        return id === 'docmanager:open' ? made : undefined;
      }
    });
  }
  const specs = {
    default: 'python3',
    kernelspecs: {
      python3: { name: 'python3', language: 'python' },
      ir: { name: 'ir', language: 'R' }
    }
  };
  const save = jest.fn();
  const serviceManager = {
    contents: {
      localPath: (path: string) => path.replace(/^RTC:/, ''),
      newUntitled: ({ path }: { path: string }) =>
        path === 'locked'
          ? Promise.reject(new Error('Permission denied'))
          : Promise.resolve({ path: `${path}/Untitled.ipynb` }),
      save
    },
    kernelspecs: { ready: Promise.resolve(), specs }
  };
  const panel = notebook && {
    content: { model: {} },
    context: { path: notebook },
    sessionContext: {
      session: { kernel: { id: 'k1', name: kernel } },
      specsManager: { specs }
    }
  };
  const model = makeModel({ pools: new Map(pool ? [['p1', pool]] : []) });
  const browser = { selectedItems: () => selected.map(path => ({ path })) };
  const start = makeStart(model);
  void runFilePlugin.activate(
    { commands, serviceManager } as unknown as JupyterFrontEnd,
    model,
    start,
    { tracker: { currentWidget: browser } },
    {
      currentWidget: panel || null,
      find: (is: (one: unknown) => boolean) => [made].find(is)
    },
    null
  );
  const run = async () => {
    await commands.execute(CommandIDs.runFile);
    return executed;
  };
  return { commands, run, save };
}

describe('Run on Ranks in the file browser', () => {
  it.each([
    [['a.py'], true],
    [['a.txt'], false],
    [['a.py', 'b.py'], false],
    [[], false]
  ])('is there for one Python file: %j', (selected, isVisible) => {
    const { commands } = make({ selected });
    expect(commands.isVisible(CommandIDs.runFile)).toBe(isVisible);
  });

  it.each([
    ['work/train.py', 'work/a.ipynb', 'train.py'],
    ['work/train.py', 'a.ipynb', 'work/train.py'],
    ['train.py', 'work/a.ipynb', '../train.py'],
    ['RTC:work/train.py', 'RTC:work/a.ipynb', 'train.py'],
    ['my work/a b.py', 'a.ipynb', '"my work/a b.py"'],
    ['-x.py', 'a.ipynb', './-x.py']
  ])('runs %s from %s as %s', async (file, notebook, path) => {
    const { run } = make({ selected: [file], notebook });
    expect(await run()).toEqual([
      { id: CommandIDs.insertCode, source: `%dist_run ${path}`, run: true }
    ]);
  });

  it('starts the ranks first where none run', async () => {
    const { run } = make({ pool: null });
    expect(await run()).toEqual([
      {
        id: CommandIDs.insertCode,
        source: `${START}\n%dist_run train.py`,
        run: true
      }
    ]);
  });

  it.each([{ notebook: '' }, { kernel: 'ir', pool: null }])(
    'makes a notebook beside the file where no Python notebook is current: %j',
    async options => {
      const { run, save } = make(options);
      const path = 'work/Untitled.ipynb';
      expect(await run()).toEqual([
        { id: 'docmanager:open', path },
        { id: 'notebook:run-all-cells' }
      ]);
      expect(save.mock.calls[0][1].content).toMatchObject({
        metadata: { kernelspec: { name: 'python3' } },
        cells: [{ source: START }, { source: '%dist_run train.py' }]
      });
    }
  );

  it('says why it cannot', async () => {
    const { run } = make({ selected: ['locked/a.py'], notebook: '' });
    const done = run();
    await dialogSays('Permission denied');
    await dialogSays('“locked/a.py” cannot be run');
    dialog()?.querySelector('button')?.click();
    await done;
  });
});
