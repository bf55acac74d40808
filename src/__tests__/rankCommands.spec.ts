import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';

import { ApiError } from '../model/restClient';
import { commandsPlugin } from '../panel/commands';
import { openRankMenu } from '../panel/ranks/rankMenu';
import { ranksPlugin } from '../panel/ranks/plugin';
import { CommandIDs } from '../model/tokens';
import {
  dialog,
  dialogSays,
  makeModel,
  makePool,
  makeRank,
  makeStart,
  until
} from './samples';
import type { IFakeModel } from './samples';
const pool = makePool({
  world_size: 4,
  ranks: [
    makeRank(0, { state: 'busy' }),
    makeRank(1),
    makeRank(2, { state: 'busy' }),
    makeRank(3, { state: 'dead' })
  ]
});

const palette = { addItem: jest.fn() };
let model: IFakeModel;
let commands: CommandRegistry;

beforeEach(() => {
  model = makeModel({ pool, pools: new Map([['p1', pool]]) });
  commands = new CommandRegistry();
  const app = { commands } as JupyterFrontEnd;
  const start = makeStart(model);
  void commandsPlugin.activate(app, model, model, start, null);
  const panel = {
    sessionContext: { session: { kernel: { id: 'k1' } } }
  } as NotebookPanel;
  const tracker = { currentWidget: panel } as INotebookTracker;
  void ranksPlugin.activate(app, model, model, tracker, palette);
});

/** Press a button of the dialog that says this. */
async function answer(words: string, button: string): Promise<void> {
  await dialogSays(words);
  dialog()?.querySelector<HTMLElement>(button)?.click();
}

describe('what can be done with a rank', () => {
  const { interruptRanks, restartRanks, killRank } = CommandIDs;
  const { showStacks, showLog, runOnRank } = CommandIDs;

  it.each([
    ['busy', 0, [interruptRanks, restartRanks, killRank, showStacks]],
    ['idle', 1, [restartRanks, killRank, showStacks]],
    ['dead', 3, [restartRanks]]
  ])('depends on what it does: %s', (_, rank, expected) => {
    const enabled = [interruptRanks, restartRanks, killRank, showStacks].filter(
      id => commands.isEnabled(id, { pool: 'p1', rank })
    );
    expect(enabled).toEqual(expected);
    expect(commands.isEnabled(showLog, { pool: 'p1', rank })).toBe(true);
    const isAlive = rank !== 3;
    expect(commands.isEnabled(runOnRank, { pool: 'p1', rank })).toBe(isAlive);
  });

  it('can be debugged while it runs a cell of an open notebook', () => {
    const ranks = [0, 1, 2, 3].filter(rank =>
      commands.isEnabled(CommandIDs.debugRank, { pool: 'p1', rank })
    );
    expect(ranks).toEqual([0, 2]);
  });

  it('is in its menu, with the code that does the same', async () => {
    commands.addCommand(CommandIDs.insertCode, {
      label: ({ label }) => `${label as string}`,
      execute: jest.fn()
    });
    const owner = document.body.appendChild(document.createElement('button'));
    openRankMenu({ commands }, 'p1', 3, { owner, x: 0, y: 0 });
    const menu = document.querySelector('.lm-Menu');
    const labels = [...(menu?.querySelectorAll('.lm-Menu-itemLabel') ?? [])];
    expect(
      labels.map(({ textContent }) => textContent).filter(Boolean)
    ).toEqual([
      'Interrupt',
      'Restart',
      'Kill…',
      'Debug',
      'Step Only the Shown Rank',
      'Show Stack',
      'Show Log',
      'Run Code Here',
      'Insert Code'
    ]);
    expect(owner.getAttribute('aria-expanded')).toBe('true');
    menu?.dispatchEvent(
      new KeyboardEvent('keydown', { keyCode: 27, bubbles: true } as object)
    );
    await until(() => document.querySelector('.lm-Menu') === null);
    expect(document.activeElement).toBe(owner);
    owner.remove();
  });

  it('interrupts it alone', async () => {
    await commands.execute(interruptRanks, { pool: 'p1', rank: 2 });
    expect(model.interrupt).toHaveBeenCalledWith('p1', [2]);
  });

  it('asks before it ends a rank that lives', async () => {
    const killed = commands.execute(killRank, { pool: 'p1', rank: 1 });
    await answer('Kill rank 1?', '.jp-mod-reject');
    await killed;
    expect(model.kill).not.toHaveBeenCalled();

    const killedNow = commands.execute(killRank, { pool: 'p1', rank: 1 });
    await answer('Kill rank 1?', '.jp-mod-warn');
    await killedNow;
    expect(model.kill).toHaveBeenCalledWith('p1', [1]);

    const restarted = commands.execute(restartRanks, { pool: 'p1', rank: 2 });
    await answer(
      'Its variables will be lost; the other ranks keep theirs.',
      '.jp-mod-warn'
    );
    await restarted;
    expect(model.restart).toHaveBeenCalledWith('p1', { ranks: [2] });
  });

  it('does not ask where nothing is lost', async () => {
    await commands.execute(restartRanks, { pool: 'p1', rank: 3 });
    expect(model.restart).toHaveBeenCalledWith('p1', { ranks: [3] });
    const ranks = [makeRank(0, { state: 'dead' })];
    Object.assign(model, { pool: makePool({ ranks, world_size: 1 }) });
    await commands.execute(CommandIDs.stopPool);
    expect(model.stop).toHaveBeenCalledWith('p1');
  });

  it('replaces of the dead ones those that are named', async () => {
    const ranks = ['dead', 'idle', 'dead', 'dead'] as const;
    const dead = makePool({
      ranks: ranks.map((state, rank) => makeRank(rank, { state }))
    });
    Object.assign(model, { pools: new Map([['p1', dead]]) });
    const args = { pool: 'p1', dead: true };
    await commands.execute(restartRanks, args);
    expect(model.restart).toHaveBeenLastCalledWith('p1', { ranks: [0, 2, 3] });
    await commands.execute(restartRanks, { ...args, ranks: [1, 2] });
    expect(model.restart).toHaveBeenLastCalledWith('p1', { ranks: [2] });
  });

  it('is nothing for the palette, but for the stacks', () => {
    const args = { isPalette: true };
    const offered = palette.addItem.mock.calls.map(([{ command }]) => command);
    expect(new Set(offered)).toEqual(new Set([showStacks]));
    expect(commands.label(showStacks, args)).toBe('Show Stacks');
  });
});

describe('texts of ranks', () => {
  const button = (name: string) =>
    [...(dialog()?.querySelectorAll('button') ?? [])].find(
      ({ textContent }) => textContent === name
    );
  const close = () => dialog()?.querySelector<HTMLElement>('.jp-mod-reject');
  const blocks = () =>
    [...(dialog()?.querySelectorAll('section') ?? [])].map(
      ({ textContent }) => textContent
    );

  it('are the stacks of all that live, the same ones together', async () => {
    const texts = [
      'Thread 0x7f01\n  File "/tmp/ipykernel_12/1.py", line 2',
      'Thread 0x7f99\n  File "/tmp/ipykernel_99/1.py", line 2'
    ];
    Object.assign(model.requests, {
      stack: jest.fn((_: string, rank: number) =>
        rank === 2
          ? Promise.reject(
              new ApiError(
                { code: 'x', message: 'No answer.', hint: 'Kill it.' },
                504
              )
            )
          : Promise.resolve({ rank, text: texts[rank] })
      )
    });
    const shown = commands.execute(CommandIDs.showStacks, { pool: 'p1' });
    await dialogSays('Stacks of all ranks');
    await until(() => blocks().length > 0);
    expect(blocks()).toEqual([
      `ranks 0–1${texts[0]}`,
      'rank 2No answer.Kill it.'
    ]);
    expect(model.requests.stack).toHaveBeenCalledTimes(3);
    button('Refresh')?.click();
    await until(
      () => (model.requests.stack as jest.Mock).mock.calls.length === 6
    );
    close()?.click();
    await shown;
  });

  it('are the log of one, also if it is empty', async () => {
    let answer = (_: { rank: number; lines: string[] }) => {};
    const later = new Promise(resolve => (answer = resolve));
    Object.assign(model.requests, {
      log: jest
        .fn()
        .mockResolvedValueOnce({ rank: 1, lines: ['one', 'two'] })
        .mockReturnValueOnce(later)
    });
    const shown = commands.execute(CommandIDs.showLog, { pool: 'p1', rank: 1 });
    await dialogSays('Log of rank 1');
    await until(() => blocks().length > 0);
    expect(blocks()).toEqual(['one\ntwo']);
    // Enter is for the button that has the focus, and leaves the dialog where it is.
    const refresh = button('Refresh');
    refresh?.focus();
    refresh?.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
    );
    refresh?.click();
    await until(() => refresh?.getAttribute('aria-disabled') === 'true');
    expect(document.activeElement).toBe(refresh);
    expect(refresh?.disabled).toBe(false);
    answer({ rank: 1, lines: [] });
    await until(() => blocks()[0] !== 'one\ntwo');
    expect(blocks()).toEqual(['Rank 1 has written nothing to stderr.']);
    close()?.click();
    await shown;
  });
});
