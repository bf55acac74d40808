import { galata } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { PretendedPool } from './pretendedPool';
import type { ISaid } from './pretendedPool';
import { expect, Panel, test } from './support';

// Nobody wants to wait for long here.
test.use({
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
});

const menuItem = (page: Page, name: string) =>
  page.getByRole('menuitem', { name, exact: true });

test('a rank that others wait for, and all that can be done with one', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('ranks.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 3',
    '%%distributed\nimport sys\nprint("to be logged", file=sys.stderr)',
    '%%distributed\nif rank < 2:\n    dist.all_reduce(torch.ones(1))'
  ]);
  const dialog = page.getByRole('dialog');
  const openMenu = (rank: number) =>
    panel.button(`Menu of rank ${rank}`).press('Enter');

  await test.step('who waits for whom, in a sentence', async () => {
    for (const index of [0, 1, 2]) {
      await notebooks.run(index);
    }
    await expect(
      panel.state('Rank 2 never joined all_reduce #1.')
    ).toContainText(/Rank 2 is idle\. Ranks 0–1 wait at cell \[3\], line \d\./);
    await expect(panel.tile(0)).toContainText(/waits in all_reduce · \d+ s/);
    await expect(panel.tile(2)).toContainText(/idle \d+ s/);
    await expect(
      panel.pool.getByText('cell [3] on ranks 0–1 · rank 2 idle')
    ).toBeVisible();
    await expect(
      page.getByRole('button', { name: 'rank 2 never joined all_reduce #1' })
    ).toBeVisible();
    await panel.expectRight();
  });

  await test.step('stacks: those that are the same stand together', async () => {
    await panel.button('Show stacks').click();
    const together = dialog.getByRole('region', { name: 'ranks 0–1' });
    await expect(together).toContainText('all_reduce');
    await expect(dialog.getByRole('region', { name: 'rank 2' })).toBeVisible();
    await expectAccessibleInBothThemes(page, ['.jp-Dialog']);
    await dialog.getByRole('button', { name: 'Copy' }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toMatch(/^ranks 0–1:\n[^]*\n\nrank 2:\n/);
    const refresh = dialog.getByRole('button', { name: 'Refresh' });
    await refresh.press('Enter');
    await expect(dialog.getByRole('button', { name: 'Copy' })).toBeVisible();
    await expect(refresh).toBeFocused();
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
  });

  await test.step('Interrupt ends the wait', async () => {
    await panel.pool
      .getByRole('status')
      .getByRole('button', { name: 'Interrupt' })
      .click();
    await panel.expectRunning(3);
    await expect(panel.button('Show stacks')).toBeHidden();
  });

  await test.step('the log of one', async () => {
    await openMenu(1);
    await expect(menuItem(page, 'Interrupt')).toHaveClass(/lm-mod-disabled/);
    await menuItem(page, 'Show Log').click();
    await expect(dialog).toContainText('Log of rank 1');
    await expect(dialog.locator('pre')).toBeVisible();
    await expectAccessibleInBothThemes(page, ['.jp-Dialog']);
    await page.keyboard.press('Escape');
  });

  await test.step('kill it, with the keyboard', async () => {
    await openMenu(1);
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    await expect(dialog).toContainText('Kill rank 1?');
    await dialog.getByRole('button', { name: 'Kill' }).click();
    await expect(panel.tile(1)).toContainText('dead: killed by');
    await expect(panel.tile(0)).toContainText('idle');
  });

  await test.step('restart it: nothing is lost, so nobody asks', async () => {
    const [kept, pid] = await panel.pids();
    await panel.tile(1).click({ button: 'right' });
    await menuItem(page, 'Restart').click();
    await panel.expectRunning(3);
    const pids = await panel.pids();
    expect(pids[0]).toBe(kept);
    expect(pids[1]).not.toBe(pid);
  });

  await test.step('a cell that runs there only', async () => {
    await openMenu(1);
    await menuItem(page, 'Run Code Here').click();
    await expect(page.locator('.jp-Cell.jp-mod-active')).toContainText(
      '%%rank [1]'
    );
    await expect(
      page.locator('.jp-Cell.jp-mod-active .cm-content')
    ).toBeFocused();
    await page.keyboard.type('print("only", rank)');
    await page.keyboard.press('Control+Enter');
    await expect(
      page.locator('.jp-Cell').filter({ hasText: '%%rank' })
    ).toContainText('only 1');
  });

  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
});

test('64 ranks: started, busy, merged, interrupted and stopped', async ({
  panel,
  notebooks
}) => {
  // The ranks have only the time that others leave: two cores may run the other tests as well.
  test.slow();
  const ofAll = { timeout: 240_000 };
  await notebooks.open('many.ipynb', [
    '%%distributed\nprint(world_size)\nif rank == 63:\n    print("the last")',
    '%%distributed\nimport time\ntime.sleep(600)'
  ]);
  await panel.start(64);
  await expect(panel.pool.getByText('64 idle')).toBeVisible(ofAll);
  await notebooks.run(0);
  await expect(notebooks.output(0)).toContainText(/0–63\s*64/);
  await expect(notebooks.output(0)).toContainText(/63\s*the last/);
  await notebooks.run(1);
  await expect(panel.pool.getByText('64 busy')).toBeVisible(ofAll);
  await expect(
    panel.pool.getByText(/^cell \[2\] · (\d+ min )?\d+ s$/)
  ).toBeVisible();
  await panel.button('Interrupt').click();
  await expect(panel.pool.getByText('64 idle')).toBeVisible(ofAll);
  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  await expect(panel.form).toBeVisible(ofAll);
});

test.describe('on a pretend machine', () => {
  // The stream is to be caught before the page asks for it.
  test.use({ baseURL: FAKE_GPUS_URL, autoGoto: false });

  test('128 ranks fit, and take the keyboard', async ({ page, notebooks }) => {
    const pretended = await PretendedPool.follow(page);
    await page.goto();
    const panel = new Panel(page);
    await panel.open();
    await notebooks.open('many.ipynb', ['']);
    const kernel = await notebooks.kernel('many.ipynb');
    const ranks: ISaid[] = Array.from({ length: 128 }, () => ({ cell: 6 }));
    ranks[77] = { state: 'dead', exit: 'killed' };
    pretended.say(kernel, ranks);
    await expect(panel.pool.getByText('1 dead')).toBeVisible();
    await expect(panel.pool.getByText('127 idle')).toBeVisible();

    await expect(panel.tiles).toHaveCount(128);

    await test.step('the keyboard reaches all, and their menus', async () => {
      const option = (rank: number) =>
        panel.pool.getByRole('option', { name: `Rank ${rank} ·` });
      await panel.tiles.first().focus();
      await page.keyboard.press('End');
      await expect(option(127)).toBeFocused();
      await expect(option(127)).toBeInViewport();
      await page.keyboard.press('ArrowLeft');
      await expect(option(126)).toBeFocused();
      await expect(option(126)).toHaveAttribute(
        'title',
        /^Rank 126 · GPU 6\nidle \d+ (s|min)\n[^]*31\.2 GiB allocated\npid 10126$/
      );
      await page.keyboard.press('ContextMenu');
      await expect(menuItem(page, 'Show Stack')).toBeVisible();
      await page.keyboard.press('Escape');
      await expect(option(126)).toBeFocused();
    });

    await test.step('a change of all is drawn at once', async () => {
      for (const cell of [7, 8]) {
        pretended.say(
          kernel,
          ranks.map(() => ({ state: 'busy', cell }))
        );
        await expect(panel.pool.getByText(`cell [${cell}]`)).toBeVisible();
        await expect(panel.pool.getByText('128 busy')).toBeVisible();
      }
    });

    await panel.expectRight();
  });

  test('the sections stay as they were left', async ({ page, notebooks }) => {
    const pretended = await PretendedPool.follow(page);
    await page.goto();
    const panel = new Panel(page);
    await panel.open();
    await notebooks.open('many.ipynb', ['']);
    await page.setViewportSize({ width: 1280, height: 1100 });
    pretended.say(await notebooks.kernel('many.ipynb'), [
      { cell: 6 },
      {
        state: 'dead',
        exit: 'killed by signal 9 (SIGKILL)',
        stderr: Array.from({ length: 4 }, (_, line) => `line ${line}`)
      }
    ]);
    await expect(panel.tile(1)).toContainText('dead');

    const kept = (what: string) =>
      page.waitForResponse(
        response =>
          response.url().includes('api/workspaces') &&
          Boolean(response.request().postData()?.includes(what))
      );
    const title = panel.root.getByRole('heading', { name: 'GPUs Section' });
    await expect(title).toHaveAttribute('aria-expanded', 'true');
    const saved = kept('"closed":[false,true,');
    await title.click();
    await expect(panel.gpus).toBeHidden();
    await saved;
    await page.reload();
    await expect(panel.root).toBeVisible();
    await expect(title).toHaveAttribute('aria-expanded', 'false');
    await expect(panel.gpus).toBeHidden();
  });
});
