import { galata } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';

import { expect, Panel, test } from './support';

const NOTEBOOK = 'shared.ipynb';
const MODE = 'all cells on ranks';

function modeButton(page: Page): Locator {
  return page.getByRole('button', { name: MODE });
}

async function opened(
  page: IJupyterLabPageFixture,
  folder: string
): Promise<Panel> {
  await page.evaluate(async path => {
    const panel = await window.jupyterapp.commands.execute('docmanager:open', {
      path
    });
    await panel.sessionContext.ready;
  }, `${folder}/${NOTEBOOK}`);
  const panel = new Panel(page);
  await panel.open();
  return panel;
}

test('two browsers and a second tab see the same state at once', async ({
  page,
  panel,
  notebooks,
  browser,
  baseURL,
  tmpPath,
  waitForApplication
}) => {
  await notebooks.open(NOTEBOOK, [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    '%%distributed\nimport time\ntime.sleep(600)',
    'print(rank)'
  ]);
  // As another browser does, it asks the server itself what runs.
  const options = {
    baseURL: baseURL!,
    tmpPath,
    waitForApplication,
    mockKernels: false,
    mockSessions: false,
    resetWorkspace: false
  };
  const { page: other } = await galata.newPage({
    ...options,
    appPath: '/lab/workspaces/other',
    browser
  });
  const there = await opened(other, tmpPath);
  await expect(there.form).toBeVisible();

  await test.step('a pool that the one starts', async () => {
    await notebooks.run(0);
    await panel.expectRunning(2);
    await there.expectRunning(2);
    expect(await there.pids()).toEqual(await panel.pids());
  });

  await test.step('a cell of the one, interrupted by the other', async () => {
    await notebooks.run(1);
    await expect(panel.tile(1)).toContainText('busy');
    await expect(there.tile(1)).toContainText('busy');
    await there.button('Interrupt').click();
    await expect(panel.tile(1)).toContainText('idle');
    await expect(notebooks.output(1)).toContainText('Interrupted: ranks 0-1');
  });

  await test.step('where cells run, switched by the other', async () => {
    await other.getByRole('button', { name: /^Ranks: / }).click();
    await other
      .getByRole('menuitem', { name: 'Run All Cells on Ranks' })
      .click();
    await expect(modeButton(other)).toBeVisible();
    await expect(modeButton(page)).toBeVisible();
    await expect(
      page
        .locator('.jp-NotebookPanel:visible .jp-Cell')
        .nth(2)
        .getByRole('img', { name: 'Runs on all ranks' })
    ).toBeVisible();
    await notebooks.run(2);
    await expect(notebooks.output(2)).toContainText(/0[^]*1/);
    await modeButton(page).click();
    await expect(modeButton(other)).toBeHidden();
  });

  await test.step('a second tab of the same browser, and the end', async () => {
    const { page: tab } = await galata.newPage({
      ...options,
      appPath: '/lab/workspaces/third',
      browser: { newContext: async () => page.context() } as typeof browser
    });
    const third = await opened(tab, tmpPath);
    await third.expectRunning(2);
    await third.answer('Stop…', 'Stop all ranks?', 'Stop');
    for (const one of [panel, there, third]) {
      await expect(one.form).toBeVisible();
    }
    await tab.close();
  });
  await other.close();
});
