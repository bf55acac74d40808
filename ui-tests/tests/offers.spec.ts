import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import { FAKE_GPUS_URL } from '../playwright.config';
import { show } from './pictures';
import { cancelJobs, expect, test } from './support';
import type { Notebooks } from './support';

// Eight pretend GPUs; another process is on GPU 6.
test.use({ baseURL: FAKE_GPUS_URL });

test.afterEach(async ({ page }) => cancelJobs(page));

/** Starts a pool for another notebook, by REST; answers its id. */
async function startFor(
  page: IJupyterLabPageFixture,
  notebooks: Notebooks,
  name: string,
  gpu_ids: number[],
  oversubscribe = false
): Promise<string> {
  const kernel_id = await notebooks.kernel(name);
  const data = { kernel_id, gpu_ids, oversubscribe };
  let id = '';
  // Ranks of the test before may still end on these GPUs.
  await expect(async () => {
    const answer = await page.request.post('jupyter-dist/pools', { data });
    expect(answer.status()).toBe(202);
    id = (await answer.json()).id;
  }).toPass({ timeout: 45_000 });
  return id;
}

test('a start on GPUs that are taken waits, or starts on others', async ({
  page,
  panel,
  notebooks
}) => {
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('one.ipynb', ['']);
  await notebooks.open('two.ipynb', ['']);
  const chip = (gpu: number) =>
    panel.form.getByRole('checkbox', { name: `GPU ${gpu}`, exact: true });
  await chip(0).check();
  const one = await startFor(page, notebooks, 'one.ipynb', [0, 1, 2, 3]);
  const refusal = panel.pool.getByRole('alert');

  await test.step('on those that are free', async () => {
    await expect(chip(0)).toHaveAccessibleDescription(/one\.ipynb/);
    await panel.button('Start').click();
    await expect(refusal).toBeInViewport();
    await expect(refusal).toContainText('GPU 0 is leased by');
    await expect(panel.button('Run as Job…')).toBeVisible();
    await panel.expectRight();
    await show(panel.root, 'refused');
    await panel.button('Start on GPU 4').click();
    await panel.expectRunning(1);
    await expect(panel.tile(0)).toContainText('GPU 4');
    await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  });

  await test.step('in line, and a notification when it is ready', async () => {
    await expect(panel.state('stopped')).toBeVisible();
    await panel.button('Start').click();
    await panel.pool
      .getByRole('button', { name: /^Wait \(#1 in line/ })
      .click();
    await expect(panel.state('Waiting for GPUs')).toBeVisible();
    await expect(panel.pool).toContainText('#1 in line · about');
    const toolbar = page.locator(
      '.jp-NotebookPanel:visible .jp-dist-RanksItem'
    );
    await expect(toolbar).toContainText('#1 in line');
    await expect(page.locator('.jp-dist-StatusItem')).toContainText(
      '#1 in line'
    );
    await panel.expectRight();
    await show(panel.root, 'waiting');
    await page.request.delete(`jupyter-dist/pools/${one}`);
    await panel.expectRunning(1);
    await expect(
      page.getByText('The GPUs are free: 1 rank of two.ipynb is ready.')
    ).toBeVisible();
  });
});

test('a start for which no GPU is free runs as a job', async ({
  page,
  panel,
  notebooks
}) => {
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('one.ipynb', ['']);
  await notebooks.open('two.ipynb', ['']);
  await startFor(page, notebooks, 'one.ipynb', [0, 1, 2, 3, 4, 5, 7]);
  await expect(panel.gpus).toContainText('one.ipynb');
  await panel.stepper.fill('2');
  await panel.button('Start').click();
  const refusal = panel.pool.getByRole('alert');
  await expect(refusal).toContainText('No GPU is free');
  await panel.button('Run as Job…').click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('GPUs', { exact: true })).toHaveValue('2');
  await page.keyboard.press('Escape');
});

test('a start shares a GPU with those who share it', async ({
  page,
  panel,
  notebooks
}) => {
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('one.ipynb', ['']);
  await notebooks.open('two.ipynb', ['']);
  await panel.form
    .getByRole('checkbox', { name: 'GPU 0', exact: true })
    .check();
  await startFor(page, notebooks, 'one.ipynb', [0], true);
  await expect(panel.gpus).toContainText('one.ipynb');
  await panel.button('Start').click();
  await expect(panel.pool.getByRole('alert')).toBeInViewport();
  await panel.button('Share the GPUs').click();
  await panel.expectRunning(1);
  await expect(panel.tile(0)).toContainText('GPU 0');
});

test('a pool that has been idle for long gives its GPUs back', async ({
  page,
  panel,
  notebooks
}) => {
  // As if its last cell had ended two hours ago.
  const idle_since = Date.now() / 1000 - 7205;
  await page.routeWebSocket(/jupyter-dist\/stream/, socket => {
    socket.connectToServer().onMessage(message => {
      const said = JSON.parse(String(message));
      const pools =
        said.type === 'pools'
          ? said.pools
          : said.type === 'pool'
            ? [said.pool]
            : [];
      for (const pool of pools) {
        Object.assign(pool, { idle_since });
      }
      socket.send(JSON.stringify(said));
    });
  });
  await page.reload();
  await panel.open();
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('idle.ipynb', ['']);
  await panel.start(1);
  await panel.expectRunning(1);
  await expect(
    panel.pool.getByText(/^GPU \d has been idle for 2 h/)
  ).toBeVisible();
  await panel.expectRight();
  await show(panel.root, 'idle');
  await panel.answer('Release…', 'Stop all ranks?', 'Stop');
  await expect(panel.form).toBeVisible();
});
