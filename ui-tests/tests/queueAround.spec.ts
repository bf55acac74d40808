import { galata } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { FAKE_GPUS_URL } from '../playwright.config';
import { cancelJobs, expect, test } from './support';

// Eight pretend GPUs; another process is on GPU 6.
test.use({
  baseURL: FAKE_GPUS_URL,
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    '@jupyterlab/apputils-extension:notification':
      galata.DEFAULT_SETTINGS['@jupyterlab/apputils-extension:notification'],
    'jupyter-dist-server:plugin': { openJobNotebooks: true }
  }
});

test.afterEach(({ page }) => cancelJobs(page));

test('what others have and wait for is grey, and nothing can be done about it', async ({
  page,
  panel,
  notebooks
}) => {
  // Another queue of the same user: its jobs are not ours.
  const other = 'XDG_STATE_HOME=$PWD/other jdist';
  const submit = `${other} submit --chdir /tmp --output /dev/null --time 10 --cpus 0`;
  await notebooks.open('other.ipynb', [
    `!${submit} -J theirs --gpus 5 sleep 600\n!${submit} -J next --gpus 5 sleep 600`,
    `!${other} cancel theirs next; ${other} wait theirs next; echo done`
  ]);
  await page.sidebar.setWidth(250, 'left');
  for (const index of [0, 1, 3]) {
    await panel.root.locator('.jp-AccordionPanel-title').nth(index).click();
  }
  const section = panel.root.getByRole('region', { name: 'Queue Section' });
  const row = (name: RegExp) => section.getByRole('listitem', { name });
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: {
      ...{ command: ['sleep', '600'], name: 'ours', chdir: '/tmp' },
      ...{ output: '/dev/null', gpus: 1, cpus: 0 }
    }
  });
  expect(answer.status()).toBe(201);
  await notebooks.run(0);
  const [ours, theirs, next] = [/ ours$/, / · theirs$/, / · next$/].map(row);
  await expect(ours).toContainText('Running');
  await expect(theirs).toContainText('Running');
  await expect(next).toContainText('Waits');
  const colour = (name: string) =>
    section
      .locator('.jp-dist-QueueRow-head')
      .getByText(name)
      .evaluate(node => getComputedStyle(node).color);
  for (const row of [theirs, next]) {
    await expect(row.getByRole('button')).toHaveCount(0);
  }
  expect(await colour('theirs')).not.toBe(await colour('ours'));
  expect(await colour('theirs')).toBe(await colour('next'));
  await panel.expectRight();
  await notebooks.run(1);
  await expect(notebooks.output(1)).toContainText('done');
  await expect(theirs).toHaveCount(0);
});

test('a job that has waited is told of when it starts, and its notebook opens when it is done', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  await notebooks.open('results.ipynb', ['print("lr is", 0.5)']);
  await expect(panel.root).toBeVisible();
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('docmanager:save')
  );
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: {
      ...{ notebook: `${tmpPath}/results.ipynb`, chdir: tmpPath, cpus: 0 },
      // A start within 15 s is no news.
      ...{ name: 'patient', begin: 'now+25' }
    }
  });
  expect(await answer.text()).toContain('label');
  const { label } = (await answer.json()).jobs[0];
  for (const what of ['started', 'completed']) {
    await expect(
      page.getByText(`Job ${label} patient has ${what}.`)
    ).toBeVisible({ timeout: 90_000 });
  }
  const results = page.locator('.jp-NotebookPanel:visible');
  await expect(results).toContainText('lr is 0.5');
  const path = await page.evaluate(
    () => (window.jupyterapp.shell.currentWidget as NotebookPanel).context.path
  );
  expect(path).not.toBe(`${tmpPath}/results.ipynb`);
});
