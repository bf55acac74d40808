import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ILauncher } from '@jupyterlab/launcher';
import type { KernelSpec } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import {
  firstCells,
  makeContent,
  pythonKernel
} from '../notebook/launcher/newNotebook';
import { launcherPlugin } from '../notebook/launcher/plugin';
import { CommandIDs } from '../model/tokens';
import { dialog, dialogSays } from './samples';

function makeSpec(name: string, language: string): KernelSpec.ISpecModel {
  return {
    name,
    language,
    display_name: name.toUpperCase(),
    argv: [],
    resources: {}
  };
}

const r = makeSpec('ir', 'R');
const python = makeSpec('python3', 'python');
const torch = makeSpec('torch', 'python');
const specs = (kernel: string): KernelSpec.ISpecModels => ({
  default: kernel,
  kernelspecs: { ir: r, python3: python, torch }
});

describe('pythonKernel', () => {
  it('is the default one, unless that is not Python', () => {
    expect(pythonKernel(specs('torch'))).toBe(torch);
    expect(pythonKernel(specs('ir'))).toBe(python);
    expect(pythonKernel(null)).toBeNull();
  });
});

describe('launcherPlugin', () => {
  it.each([
    ['the folder of the launcher', { cwd: 'here' }, 'here'],
    ['the server’s folder, without a file browser', {}, '']
  ])('makes a notebook in %s', async (_, args, folder) => {
    const commands = new CommandRegistry();
    const opened = jest.fn();
    commands.addCommand('docmanager:open', { execute: opened });
    const contents = {
      newUntitled: jest.fn().mockResolvedValue({ path: 'Untitled.ipynb' }),
      save: jest.fn()
    };
    const kernelspecs = { ready: Promise.resolve(), specs: specs('torch') };
    const serviceManager = { contents, kernelspecs };
    const app = { commands, serviceManager } as unknown as JupyterFrontEnd;
    const add = jest.fn();
    void launcherPlugin.activate(
      app,
      nullTranslator,
      { add } as ILauncher,
      null
    );
    expect(add.mock.calls[0][0]).toMatchObject({ category: 'Notebook' });

    await commands.execute(CommandIDs.newNotebook, args);
    expect(contents.newUntitled).toHaveBeenCalledWith({
      path: folder,
      type: 'notebook'
    });
    expect(contents.save).toHaveBeenCalledWith('Untitled.ipynb', {
      type: 'notebook',
      format: 'json',
      content: makeContent(firstCells(), torch)
    });
    expect(opened).toHaveBeenCalledWith({ path: 'Untitled.ipynb' });
  });
});

it('says when a notebook cannot be made', async () => {
  const commands = new CommandRegistry();
  const newUntitled = () => Promise.reject(new Error('Permission denied'));
  const kernelspecs = { ready: Promise.resolve(), specs: null };
  const serviceManager = { contents: { newUntitled }, kernelspecs };
  const app = { commands, serviceManager } as unknown as JupyterFrontEnd;
  void launcherPlugin.activate(app, nullTranslator, null, null);
  const done = commands.execute(CommandIDs.newNotebook);
  await dialogSays('Permission denied');
  dialog()?.querySelector('button')?.click();
  await done;
});

describe('the first notebook', () => {
  it('begins with the magics, and keeps its kernel', () => {
    expect(makeContent(firstCells(), torch)).toMatchObject({
      metadata: { kernelspec: { name: 'torch', language: 'python' } },
      cells: [
        { cell_type: 'markdown' },
        { source: '%load_ext jupyter_dist_server\n%dist_init' },
        { source: expect.stringMatching(/^%%distributed\nprint/) },
        { source: expect.stringMatching(/^%%distributed\n/) }
      ]
    });
  });
});
