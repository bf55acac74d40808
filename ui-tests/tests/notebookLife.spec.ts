import type { NotebookPanel } from '@jupyterlab/notebook';

import type { Page } from '@playwright/test';

import { expectAccessible } from './accessibility';
import { FAKE_GPUS_URL } from '../playwright.config';
import { expect, test } from './support';

// Eight pretend GPUs. Galata's own list of kernels would not let one be restarted.
test.use({ baseURL: FAKE_GPUS_URL, kernels: null, sessions: null });

// Nor does it shut down those that are left.
test.afterEach(async ({ page }) => {
  const answer = await page.request.get('api/sessions');
  for (const { id } of await answer.json()) {
    await page.request.delete(`api/sessions/${id}`);
  }
});

test('a pool goes with its notebook: through a death, a restart of the kernel, and a new name', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  const LOAD = '%load_ext jupyter_dist_server';
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('one.ipynb', [
    LOAD,
    '%%distributed\nprint("I am", rank)',
    '%%rank [1]\nimport os\nos._exit(3)',
    '%%distributed\nimport os, time\nwhile not os.path.exists("go"): time.sleep(0.05)'
  ]);
  await panel.start(2);
  await panel.expectRunning(2);

  await test.step('“already loaded” is never said', async () => {
    await notebooks.run(0);
    await notebooks.run(1);
    await expect(notebooks.output(1)).toContainText('I am 1');
    await expect(notebooks.output(0)).not.toContainText('already loaded');
  });

  await test.step('a rank that died is replaced below its cell, and the others stay', async () => {
    const pids = await panel.pids();
    await notebooks.run(2);
    const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(2);
    await cell.getByRole('button', { name: 'Show log' }).click();
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText('Log of rank 1');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await expect(dialog).toBeHidden();
    await panel.expectRight();
    await expectAccessible(page, ['.jp-dist-FailureActions']);
    await draw(page, 'failure');
    // Whether the tiles are ever away.
    await page.evaluate(() => {
      const root = document.querySelector('#jupyter-dist-panel')!;
      const look = () => {
        const tile = root.querySelector('[aria-label="Rank 0"]');
        if (!tile) {
          root.setAttribute('data-lost', '');
        }
      };
      new MutationObserver(look).observe(root, {
        childList: true,
        subtree: true
      });
    });
    const restart = cell.getByRole('button', { name: 'Restart rank 1' });
    await restart.click();
    await panel.expectRunning(2);
    await expect(restart).toBeHidden();
    expect(await panel.root.getAttribute('data-lost')).toBeNull();
    const [kept, replaced] = await panel.pids();
    expect(kept).toBe(pids[0]);
    expect(replaced).not.toBe(pids[1]);
  });

  await test.step('a kernel that was restarted counts its cells anew, and uses it', async () => {
    await notebooks.run(3);
    const expectCell = async (number: number) => {
      for (const rank of [0, 1]) {
        await expect(panel.tile(rank)).toContainText(`busy [${number}]`);
      }
    };
    await expectCell(4);
    await page.evaluate(async () => {
      const notebook = window.jupyterapp.shell.currentWidget as NotebookPanel;
      await notebook.sessionContext.session?.kernel?.restart();
    });
    await panel.expectRunning(2);
    await expect
      .poll(async () => {
        const answer = await page.request.get('jupyter-dist/pools');
        const { pools } = await answer.json();
        return pools[0].ranks.map(({ cell }: { cell: number | null }) => cell);
      })
      .toEqual([null, null]);
    await expect(notebooks.output(1)).toContainText('I am 1');
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')
    );
    await notebooks.run(1);
    await expect(notebooks.output(1)).toContainText('I am 1');
    await notebooks.run(3);
    await expectCell(2);
    await notebooks.write('go', '');
    await panel.expectRunning(2);
  });

  await test.step('it has the new name of the notebook', async () => {
    const path = `${tmpPath}/two.ipynb`;
    await page.evaluate(
      async ([from, to]) =>
        window.jupyterapp.serviceManager.contents.rename(from, to),
      [`${tmpPath}/one.ipynb`, path]
    );
    await expect
      .poll(async () => {
        const answer = await page.request.get('jupyter-dist/pools');
        const { pools } = await answer.json();
        return pools.map(({ name }: { name: string }) => name);
      })
      .toContain(path);
    await expect(panel.root).toContainText('two.ipynb');
    await notebooks.open('three.ipynb', ['']);
    await panel.root.getByRole('heading', { name: 'Other pools' }).click();
    await expect(
      panel.root.getByRole('listitem', { name: 'Pool of two.ipynb' })
    ).toBeVisible();
  });
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`a page shows pools, GPUs and the queue on a phone (${colorScheme})`, async ({
    browser,
    baseURL
  }) => {
    const context = await browser.newContext({
      colorScheme,
      viewport: { width: 360, height: 740 }
    });
    const page = await context.newPage();
    const errors: string[] = [];
    page.on('console', message => {
      if (message.type() === 'error') {
        errors.push(message.text());
      }
    });
    const answer = await page.goto(`${baseURL}/jupyter-dist/`);
    expect(answer?.status()).toBe(200);
    for (const name of ['Pools', 'GPUs', 'Queue']) {
      await expect(
        page.getByRole('heading', { name, exact: true })
      ).toBeVisible();
    }
    const width = await page.evaluate(() => document.body.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
    await expectAccessible(page, ['main']);
    await draw(page, `page-${colorScheme}`);
    expect(errors.filter(text => !text.includes('favicon'))).toEqual([]);
    await context.close();
  });
}

/** A picture for those who look at it. */
async function draw(page: Page, name: string): Promise<void> {
  const folder = process.env.JUPYTER_DIST_PICTURES;
  if (folder) {
    await page.screenshot({ path: `${folder}/${name}.png` });
  }
}
