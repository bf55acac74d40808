import { galata } from '@jupyterlab/galata';

import { FAKE_GPUS_URL } from '../playwright.config';
import { AROUND, expectAccessibleInBothThemes } from './accessibility';
import { PretendedPool } from './pretendedPool';
import type { ISaid } from './pretendedPool';
import { expect, Panel, test } from './support';

const PANEL = '#jupyter-dist-panel';
const ALL = [PANEL, ...AROUND];
// Lumino's separators and submenus have roles that axe does not like.
const MENU = ['.lm-Menu-item[data-type="command"]'];
const DIALOG = ['.jp-Dialog'];

const IDLE: ISaid[] = Array.from({ length: 4 }, () => ({ cell: 6 }));
const BUSY: ISaid[] = Array.from({ length: 4 }, () => ({
  state: 'busy',
  cell: 7
}));

test.use({
  baseURL: FAKE_GPUS_URL,
  // The stream is to be caught before the page asks for it.
  autoGoto: false,
  // Nobody wants to wait for long here.
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
});

test('nothing of ours is a barrier in any state, in the light and in the dark theme', async ({
  page,
  notebooks
}) => {
  const pretended = await PretendedPool.follow(page);
  await page.goto();
  const panel = new Panel(page);
  await panel.open();
  await notebooks.open('looks.ipynb', ['%%distributed\nprint(rank)']);
  const kernel = await notebooks.kernel('looks.ipynb');
  const say = (ranks: ISaid[], changes: object = {}) =>
    pretended.say(kernel, ranks, changes);
  const status = page
    .locator('#jp-main-statusbar')
    .getByRole('button', { name: /^\d+ ranks/ });
  const dialog = page.getByRole('dialog');

  const check = (state: string, parts: typeof AROUND = ALL) =>
    test.step(state, () => expectAccessibleInBothThemes(page, parts));
  const checkDialog = async (title: string) => {
    await expect(dialog).toContainText(title);
    await check(title, DIALOG);
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
  };
  const checkMenu = async (item: string) => {
    const entry = page.getByRole('menuitem', { name: item, exact: true });
    await expect(entry).toBeVisible();
    await check(`the menu with ${item}`, [...MENU, ...AROUND]);
    return entry;
  };

  await expect(panel.form).toBeVisible();
  await expect(panel.gpus.getByRole('listitem').first()).toBeVisible();
  await check('no ranks');

  say(IDLE, {
    state: 'CONFIGURING',
    started: null,
    progress: { phase: 'importing torch', ready: 1 }
  });
  await expect(panel.state('Starting')).toBeVisible();
  await expect(status).toContainText('starting 1/4');
  await check('starting');

  say(IDLE, {
    state: 'FAILED',
    reason: {
      code: 'RANK_FAILED',
      message: 'Rank 2 failed while it started.',
      hint: 'Look at its last lines.',
      rank: 2,
      stderr: ['Traceback (most recent call last):', 'ImportError: torch']
    }
  });
  await expect(panel.state('Failed')).toBeVisible();
  await check('failed');

  say(BUSY, { notices: ['Rank 3 has another version of torch.'] });
  await expect(panel.tile(3)).toContainText('busy');
  await expect(status).toHaveText(/^4 ranks · \d+ % · \d/);
  await check('busy');

  await page.getByRole('button', { name: 'Ranks: 4' }).click();
  await checkMenu('Stop Ranks…');
  await page.keyboard.press('Escape');
  await panel.button('Stop…').click();
  await checkDialog('The variables on all 4 ranks of many.ipynb will be lost.');
  await panel.button('Restart…').click();
  await checkDialog('Restart all ranks?');

  for (const [item, title] of [
    ['Kill…', 'Kill rank 1?'],
    // The server does not know it: so the dialog says.
    ['Show Stack', 'Stack of rank 1'],
    ['Show Log', 'Log of rank 1']
  ]) {
    await panel.button('Menu of rank 1').click();
    const entry =
      item === 'Kill…'
        ? await checkMenu(item)
        : page.getByRole('menuitem', { name: item, exact: true });
    await entry.click();
    if (item.startsWith('Show')) {
      await expect(dialog.getByRole('alert')).toBeVisible();
    }
    await checkDialog(title);
  }

  say([
    ...BUSY.slice(0, 3).map(said => ({
      ...said,
      waits: ['all_reduce', 3, 120] as ISaid['waits']
    })),
    { cell: 6 }
  ]);
  await expect(
    panel.state('Rank 3 never joined all_reduce #412.')
  ).toBeVisible();
  await expect(status).toContainText('rank 3 never joined all_reduce #412');
  await check('waiting');

  say([
    ...IDLE.slice(0, 3),
    { state: 'dead', exit: 'killed by signal 9 (SIGKILL)', stderr: ['bye'] }
  ]);
  await expect(panel.tile(3)).toContainText('dead');
  await expect(status).toContainText('rank 3 died');
  await check('a rank is dead');

  pretended.sayStale('nvidia-smi does not respond.');
  await expect(
    panel.gpus.getByText(/^Stale since .*nvidia-smi does not respond\.$/)
  ).toBeVisible();
  await check('stale readings');

  await pretended.loseConnection();
  await expect(
    panel.root.getByText(/^Disconnected since .*\. Reconnecting…$/)
  ).toBeVisible();
  await expect(status).toContainText('connection lost');
  await check('stale');
});
