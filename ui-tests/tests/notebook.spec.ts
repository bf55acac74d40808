import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';

import { AROUND, expectAccessibleInBothThemes } from './accessibility';
import { expect, test } from './support';

const INIT = '%load_ext jupyter_dist_server\n%dist_init -n 2';
const LOOP = `%%distributed
import time
for _ in range(600):
    time.sleep(0.1)`;
const TWICE = `%%distributed
import os
print('before', rank)
while not os.path.exists('go'):
    time.sleep(0.05)
print('after', rank)`;
const MANY = Array.from({ length: 40 }, () => 'x = 1\n'.repeat(10));

function ranksButton(page: Page): Locator {
  return page
    .locator('.jp-NotebookPanel:visible')
    .getByRole('button', { name: /^Ranks: / });
}

function status(page: Page): Locator {
  return page
    .locator('#jp-main-statusbar')
    .getByRole('button', { name: /^\d+ ranks?/ });
}

function mark(page: Page, cell: number): Locator {
  return page
    .locator('.jp-NotebookPanel:visible .jp-Cell')
    .nth(cell)
    .getByRole('img', { name: /^Runs on/ });
}

function menuItem(page: Page, name: string): Locator {
  return page.getByRole('menuitem', { name });
}

test('ranks in the toolbar, the status bar and the Running panel', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('around.ipynb', [INIT, LOOP, TWICE, ...MANY]);
  const button = ranksButton(page);

  await test.step('start from the toolbar', async () => {
    await expect(button).toHaveText('Ranks: 0');
    await expect(status(page)).toHaveCount(0);
    await button.click();
    await expect(button).toHaveAttribute('aria-expanded', 'true');
    await menuItem(page, 'Start 2 Ranks').click();
    await expect(button).toHaveText('Ranks: 2');
    await panel.expectRunning(2);
  });

  await test.step('the status bar says how busy they are, and opens the panel', async () => {
    await expect(status(page)).toHaveText(
      /^2 ranks · CPU \d+ % · \d+(\.\d)? [MG]iB$/
    );
    await page.getByRole('tab', { name: /^File Browser/ }).click();
    await expect(panel.root).toBeHidden();
    await status(page).click();
    await expect(panel.button('Interrupt')).toBeDisabled();
    await expect(panel.button('Restart…')).toBeFocused();
  });

  await test.step('a shortcut interrupts', async () => {
    await notebooks.run(1);
    const busy = page.getByTitle('2 ranks · busy · gloo');
    await expect(busy).toBeVisible();
    await page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(1).focus();
    // Both at once: JupyterLab waits a second for the second one.
    await Promise.all([page.keyboard.press('i'), page.keyboard.press('r')]);
    await expect(notebooks.output(1).first()).toContainText('Interrupted: ');
    await expect(busy).toBeHidden();
  });

  await test.step('a rank that a cell is written for completes at once', async () => {
    const answer = await page.request.get('jupyter-dist/pools');
    const [{ id }] = (await answer.json()).pools;
    const completers = async () => {
      // It has parsed something; older versions of IPython import parso at once.
      const code = `import sys
bool(getattr(sys.modules.get("parso.cache"), "parser_cache", None))`;
      const told = await page.request.post(`jupyter-dist/pools/${id}/execute`, {
        data: { code }
      });
      return (await told.text()).match(/True/g)?.length ?? 0;
    };
    expect(await completers()).toBe(0);
    await page
      .locator('.jp-NotebookPanel:visible .jp-Cell .cm-content')
      .nth(1)
      .click();
    await expect.poll(completers).toBe(1);
    await page.keyboard.press('Escape');
  });

  await test.step('a cell that is out of sight while it runs stays as it was', async () => {
    const cell = page.locator('.jp-Cell').filter({ hasText: "'before', rank" });
    const scrollTo = (index: number) =>
      page.evaluate(async index => {
        const { shell } = window.jupyterapp;
        const { content } = shell.currentWidget as NotebookPanel;
        const windowingMode = 'full';
        content.notebookConfig = { ...content.notebookConfig, windowingMode };
        content.activeCellIndex = index;
        await content.scrollToItem(index);
      }, index);
    await notebooks.run(2);
    await cell.getByRole('tab', { name: 'Rank 1' }).click();
    await expect(cell.getByText('before 1')).toBeVisible();
    await scrollTo(42);
    await expect(cell).toBeHidden();
    await notebooks.write('go', '');
    await panel.expectRunning(2);
    await scrollTo(2);
    await expect(
      cell.getByRole('img', { name: 'Runs on all ranks' })
    ).toBeVisible();
    await expect(cell.getByRole('tab', { name: 'Rank 1' })).toHaveAttribute(
      'aria-selected',
      'true'
    );
    await expect(cell.locator('.jp-dist-Row-text:visible')).toHaveText(
      /^before 1\s*after 1\s*$/
    );
  });

  await test.step('a rank that dies is told', async () => {
    const [, pid] = await panel.pids();
    process.kill(pid, 'SIGKILL');
    await expect(button).toHaveText('Ranks: 2 · rank 1 died');
    await expect(status(page)).toContainText('2 ranks · rank 1 died');
    await expectAccessibleInBothThemes(page, AROUND);
    await button.focus();
    await page.keyboard.press('Enter');
    await expect(menuItem(page, 'Restart Ranks…')).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(button).toBeFocused();
    await button.press('Enter');
    await menuItem(page, 'Replace Dead Ranks').click();
    await expect(button).toHaveText('Ranks: 2');
  });

  await test.step('the Running panel lists the pool, and stops it', async () => {
    await page.getByRole('tab', { name: /^Running/ }).click();
    const pools = page.getByRole('region', { name: 'Pools of Ranks Section' });
    const pool = pools.locator('.jp-RunningSessions-item');
    await expect(pool).toHaveCount(1);
    await expect(pool).toContainText('around.ipynb');
    await expect(pool).toContainText('2 ranks · idle');
    await notebooks.open('other.ipynb', ['']);
    await expect(ranksButton(page)).toHaveText('Ranks: 0');
    await pool.getByText('around.ipynb').click();
    await expect(panel.root).toBeVisible();
    await expect(button).toHaveText('Ranks: 2');

    await page.getByRole('tab', { name: /^Running/ }).click();
    await pool.hover();
    await pool.getByTitle('Stop Ranks').click();
    const dialog = page
      .getByRole('dialog')
      .filter({ hasText: 'Stop all ranks?' });
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
    await expect(pool).toHaveCount(0);
    await expect(button).toHaveText('Ranks: 0');
    await expect(status(page)).toHaveCount(0);
  });
});

test('cells that run on ranks are marked', async ({ page, notebooks }) => {
  await notebooks.open('marks.ipynb', ['print(1)', '%%rank 0,2\nprint(2)']);
  const source = page.locator('.jp-NotebookPanel:visible .cm-content').first();
  await expect(mark(page, 0)).toHaveCount(0);
  await expect(mark(page, 1)).toHaveAccessibleName('Runs on ranks 0, 2');

  await test.step('a shortcut puts the magic before a cell, and removes it', async () => {
    await page.locator('.jp-NotebookPanel:visible .jp-Cell').first().focus();
    await page.keyboard.press('Shift+D');
    await expect(source).toHaveText('%%distributedprint(1)');
    await expect(mark(page, 0)).toHaveAccessibleName('Runs on all ranks');
    await page.keyboard.press('Shift+D');
    await expect(source).toHaveText('print(1)');
    await expect(mark(page, 0)).toHaveCount(0);
  });

  await test.step('so do the menu of the cell and its toolbar', async () => {
    const item = menuItem(page, 'Run on Ranks');
    await source.click({ button: 'right' });
    await item.click();
    await expect(mark(page, 0)).toBeVisible();
    await page
      .locator('.jp-NotebookPanel:visible .jp-cell-toolbar')
      .locator('[data-jp-item-name="dist-run-on-ranks"]')
      .click();
    await expect(mark(page, 0)).toHaveCount(0);
  });

  await test.step('the mark follows what is typed', async () => {
    await source.click();
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.type('%%rank 1');
    await expect(mark(page, 0)).toHaveCount(1);
    await page.keyboard.press('Enter');
    await expect(mark(page, 0)).toHaveAccessibleName('Runs on rank 1');
  });
});

test('the launcher makes a notebook whose first cells run', async ({
  page,
  notebooks
}) => {
  await page
    // In JupyterLab 4.2 it has no role.
    .locator('.jp-LauncherCard', { hasText: 'Distributed Notebook' })
    .click();
  await expect(
    page.getByRole('heading', { name: /^Distributed/ })
  ).toBeVisible();
  await page.evaluate(async () => {
    const { commands, shell } = window.jupyterapp;
    await (shell.currentWidget as NotebookPanel).sessionContext.ready;
    await commands.execute('notebook:run-all-cells');
  });
  await expect(notebooks.output(2)).toContainText(/Hello from rank 0 of \d/);
  await expect(notebooks.output(2)).toContainText(/Hello from rank 1 of \d/);
  await expect(ranksButton(page)).toHaveText(/^Ranks: \d+$/);
  await ranksButton(page).click();
  await menuItem(page, 'Stop Ranks…').click();
  const dialog = page
    .getByRole('dialog')
    .filter({ hasText: 'Stop all ranks?' });
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(ranksButton(page)).toHaveText('Ranks: 0');
});
