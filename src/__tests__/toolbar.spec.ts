import type { NotebookPanel } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import type { IPool } from '../model/contract';
import { RanksButton } from '../notebook/toolbar/ranksButton';
import { CommandIDs } from '../model/tokens';
import type { StartModel } from '../model/startModel';
import { makeParking, parked } from './parkSamples';
import {
  makeAttachment,
  makeModel,
  makePool,
  makeRank,
  makeStart,
  until
} from './samples';
import type { IFakeModel } from './samples';

let item: RanksButton;
let start: StartModel;
let setMode: jest.Mock;
let executed: unknown[];
const makeCurrent = jest.fn();

/** The toolbar item of a notebook whose kernel is k1. */
function show(
  pool: Partial<IPool> | null,
  changes: Partial<IFakeModel> = {},
  language = 'python'
): void {
  const pools = pool ? [makePool(pool)] : [];
  const model = makeModel({
    pools: new Map(pools.map(pool => [pool.id, pool])),
    ...changes
  });
  start = makeStart(model);
  setMode = jest.mocked(model.setMode) as jest.Mock;
  const commands = new CommandRegistry();
  executed = [];
  for (const id of Object.values(CommandIDs)) {
    commands.addCommand(id, {
      label: args => (args.dead ? `${id} dead` : id),
      execute: args => executed.push({ id, ...args })
    });
  }
  const panel = {
    sessionContext: {
      path: 'train.ipynb',
      kernelChanged: new Signal({}),
      session: { kernel: { id: 'k1', name: language } },
      specsManager: { specs: { kernelspecs: { R: { language: 'R' } } } }
    }
  } as unknown as NotebookPanel;
  item = new RanksButton({
    ...{ panel, model, start, commands, makeCurrent }
  });
  Widget.attach(item, document.body);
}

function button(): HTMLButtonElement | null {
  return item.node.querySelector('button');
}

/** Two frames: Lumino draws before the first. */
async function drawn(): Promise<void> {
  await new Promise(resolve => requestAnimationFrame(resolve));
  await new Promise(resolve => requestAnimationFrame(resolve));
}

async function open(): Promise<void> {
  await until(() => button() !== null);
  button()?.click();
}

function press(key: string, keyCode: number): void {
  const menu = document.querySelector('.lm-Menu');
  menu?.dispatchEvent(new KeyboardEvent('keydown', { key, keyCode }));
}

/** What the menu offers. */
function offered(): string[] {
  return [...document.querySelectorAll('.lm-Menu-itemLabel')]
    .map(node => node.textContent ?? '')
    .filter(Boolean);
}

afterEach(() => item.dispose());

describe('RanksButton', () => {
  const dead = makeRank(1, { state: 'dead' });

  it.each<[Partial<IPool> | null, string]>([
    [null, 'Ranks: 0'],
    [{ kernel_id: 'k2' }, 'Ranks: 0'],
    [{ state: 'COMPLETED', ended: 9 }, 'Ranks: 0'],
    [
      { state: 'CONFIGURING', progress: { phase: '', ready: 1 } },
      'Ranks · starting 1/2'
    ],
    [{}, 'Ranks: 2'],
    [{ ranks: [makeRank(0), dead] }, 'Ranks: 2 · rank 1 died'],
    [{ state: 'FAILED', ended: 9 }, 'Ranks · failed'],
    [{ state: 'SUSPENDED', parked }, 'Ranks: 2 · parked'],
    [
      { parked: { ...parked, leased: true }, parking: makeParking() },
      'Ranks: 2 · resuming'
    ]
  ])('says how %j does', async (pool, text) => {
    show(pool);
    await until(() => button()?.textContent === text);
  });

  it('goes with the server extension', async () => {
    const connection: { state: 'live' | 'missing' } = { state: 'live' };
    show(null, { connection });
    await until(() => button() !== null);
    connection.state = 'missing';
    item.update();
    await until(() => button() === null);
  });

  it('is not there where the kernel is not Python', async () => {
    show(null, {}, 'R');
    await drawn();
    expect(button()).toBeNull();
  });

  it('does not say that there are no ranks before that is known', async () => {
    show(null, { isKnown: false });
    await until(() => button()?.textContent === 'Ranks: –');
    expect(button()?.title).toBe('No connection to the server yet.');
  });

  it('says that all cells run on ranks, and ends that', async () => {
    show({ attachments: [makeAttachment({ mode: true })] });
    const mode = () =>
      item.node.querySelector<HTMLElement>('[aria-pressed="true"]');
    await until(() => mode()?.textContent === 'all cells on ranks');
    mode()?.click();
    expect(setMode).toHaveBeenCalledWith('k1', false);
  });

  it('says nothing of the kind for cells of another notebook', async () => {
    show({ attachments: [makeAttachment({ mode: true, kernel_id: 'k2' })] });
    await until(() => button() !== null);
    expect(item.node.querySelector('[aria-pressed]')).toBeNull();
  });

  it('offers to start', async () => {
    show(null);
    await open();
    expect(makeCurrent).toHaveBeenCalled();
    await until(() => button()?.getAttribute('aria-expanded') === 'true');
    expect(offered()).toEqual([
      CommandIDs.startPool,
      CommandIDs.runNotebookAsJob,
      CommandIDs.openPanel
    ]);
    press('ArrowDown', 40);
    press('Enter', 13);
    expect(executed).toEqual([{ id: CommandIDs.startPool, ranks: 2 }]);
    await until(() => button()?.getAttribute('aria-expanded') === 'false');
    expect(document.activeElement).toBe(button());
  });

  it('names no number where only the server knows it', async () => {
    show(null, { defaultRanks: null });
    await open();
    press('ArrowDown', 40);
    press('Enter', 13);
    expect(executed).toEqual([{ id: CommandIDs.startPool }]);
  });

  it('starts what was chosen in the form, if anything was', async () => {
    show(null);
    start.change('train.ipynb', 'gpu_ids', ['3']);
    await open();
    press('ArrowDown', 40);
    press('Enter', 13);
    expect(executed).toEqual([{ id: CommandIDs.startPool }]);
  });

  it('offers to resume a parked pool', async () => {
    show({ state: 'SUSPENDED', parked });
    await open();
    expect(offered()[0]).toBe(CommandIDs.resumePool);
  });

  it('offers what can be done with a pool', async () => {
    show({ ranks: [makeRank(0), dead] });
    await open();
    expect(offered()).toEqual([
      CommandIDs.interruptRanks,
      `${CommandIDs.restartRanks} dead`,
      CommandIDs.restartRanks,
      CommandIDs.stopPool,
      CommandIDs.toggleMode,
      CommandIDs.runNotebookAsJob,
      CommandIDs.openPanel
    ]);
  });
});
