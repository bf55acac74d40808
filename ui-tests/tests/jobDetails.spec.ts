import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { cutIn } from './narrow';
import { LOOK, show } from './pictures';
import { cancelJobs, expect, openJob, test } from './support';

// Eight pretend GPUs.
test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

const DETAILS = '.jp-dist-JobDetails:visible';

/** What must be readable in full at any width, and in one line. */
const WHOLE = [
  '.jp-Button',
  '.jp-dist-StatePill',
  '.jp-dist-JobFacts > dt',
  '.jp-dist-Curve > strong',
  '.jp-dist-Curve-words > span',
  '.jp-dist-Curves-times > span'
].join();

/** Prints a long output, and then a line at a time until there is a file named `go`. */
const TRAIN = `
import os, sys, time
for i in range(60): print(f"epoch {i}", end="\\r")
print()
print("\\x1b[31mred\\x1b[0m")
print("a warning", file=sys.stderr)
for i in range(30_000): print(f"step {i} of 30000, loss {1 / (i + 1):.4f}")
beats = 0
while not os.path.exists("go"):
    beats += 1
    print(f"beat {beats}")
    time.sleep(0.1)
raise SystemExit(3)`;

/** Submits a job that runs in the folder of the test; answers its label. */
async function submit(
  page: IJupyterLabPageFixture,
  chdir: string,
  options: object
): Promise<string> {
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: { chdir, ...options }
  });
  expect(await answer.text()).toContain('label');
  return (await answer.json()).jobs[0].label;
}

test.afterEach(({ page }) => cancelJobs(page));

test('a job is shown with its output, live, and how it ended', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  test.setTimeout(300_000);
  // The folder is there when the script is.
  await notebooks.write('train.py', TRAIN);
  const first = await submit(page, tmpPath, {
    ...{ command: ['true'], name: 'prepare', cpus: 0 }
  });
  const label = await submit(page, tmpPath, {
    ...{ command: ['python', 'train.py'], name: 'train', gpus: 2 },
    error: 'train.err',
    ...{ time: '60', dependency: `afterok:${first}`, env: ['SECRET=swordfish'] }
  });
  const section = panel.root.getByRole('region', { name: 'Queue Section' });
  for (const index of [0, 1, 3]) {
    await panel.root.locator('.jp-AccordionPanel-title').nth(index).click();
  }
  const job = page.getByRole('main').locator(DETAILS);
  const log = job.getByRole('log');
  const press = (name: string) =>
    job.getByRole('button', { name, exact: true }).click();

  await test.step('opens from the queue, and follows', async () => {
    const name = section.getByRole('button', {
      name: `${label} train`,
      exact: true
    });
    await expect(section.getByText(/Running \d+ (s|min)/)).toBeVisible();
    await name.press('Enter');
    await expect(job.getByRole('status').first()).toHaveText('RUNNING');
    await expect(job).toContainText(/Running \d+ (s|min) · until \d\d:\d\d/);
    await expect(log).toContainText(/beat \d/);
    const before = await log.innerText();
    await expect.poll(() => log.innerText()).not.toBe(before);
    // Only what is in sight is in the page.
    expect(await log.locator('.jp-dist-JobLog-row').count()).toBeLessThan(150);
    await expect(
      job.getByRole('img', { name: /^GPU \d · .*memory up to/ })
    ).toHaveCount(2);
    await job.getByText(/\d+ variables/).click();
    await expect(job).toContainText('SECRET');
    await expect(job).not.toContainText('swordfish');
    await job.getByText(/\d+ variables/).click();
  });

  await test.step('is searched, and read from its start', async () => {
    const search = job.getByRole('searchbox');
    await search.fill('STEP 17000 ');
    await search.press('Enter');
    await expect(log.locator('.jp-mod-found')).toHaveText(/^step 17000 of/);
    await search.fill('nothing of the kind');
    await search.press('Enter');
    await expect(job).toContainText('Not found');
    await press('Start');
    await expect(log).toContainText('epoch 59');
    await expect(log).not.toContainText('epoch 58');
    const red = log.locator('.ansi-red-fg');
    await expect(red).toHaveText('red');
    await expect(red).toHaveCSS('color', 'rgb(231, 92, 88)');
    await expect(red).toHaveCSS('font-size', '12px');
    await log.focus();
    await page.keyboard.press('End');
    await expect(log).not.toContainText('epoch 59');
    await press('End');
    await expect(log).toContainText(/beat \d/);
  });

  await test.step('shows its errors, which are in a file of their own', async () => {
    await press('Errors');
    await expect(log).toHaveText('a warning');
    await expect(job.getByText(/train\.err$/)).toBeVisible();
    await press('Output');
    await expect(log).toContainText(/beat \d/);
  });

  await test.step('is readable in a wide tab and in narrow ones', async () => {
    const { height } = LOOK.viewport;
    const widthOf = () => job.evaluate((node: HTMLElement) => node.offsetWidth);
    const look = async (name: string) => {
      await page.theme.setLightTheme();
      await show(job, `job-${name}-light`);
      await expectAccessibleInBothThemes(page, ['.jp-dist-JobDetails']);
      await show(job, `job-${name}-dark`);
    };
    await look('wide');
    for (const width of [320, 250]) {
      const other = page.viewportSize()!.width - (await widthOf());
      await page.setViewportSize({ width: other + width, height });
      await expect.poll(widthOf).toBe(width);
      await expect
        .poll(() => job.evaluate(node => node.scrollWidth - node.clientWidth))
        .toBeLessThanOrEqual(0);
      await expect.poll(() => cutIn(job, WHOLE)).toEqual([]);
      await look(`${width}`);
    }
    await page.theme.setLightTheme();
    await page.setViewportSize(LOOK.viewport);
  });

  await test.step('links to the jobs that it waited for', async () => {
    await press(`${first} prepare`);
    await expect(job).toContainText(`Job ${first} prepare has completed.`);
    await expect(log).toHaveText('');
    await page
      .getByRole('main')
      .getByRole('tab', { name: `Job ${label} train` })
      .click();
    await expect(job).toContainText('Running');
  });

  await test.step('says how it ended, and asks for one like it', async () => {
    await notebooks.write('go', '');
    await expect(job).toContainText('It ended with exit code 3.');
    await expect(job.getByRole('status').first()).toHaveText('FAILED');
    await expect(job).toContainText(/GPU load \d+ %, at most \d+ %/);
    await press('Copy as command');
    await expect(job.getByRole('button', { name: 'Copied' })).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(
      new RegExp(
        `^jdist submit --gpus 2 --time 60 --chdir .*${tmpPath} .*` +
          `--job-name train .*--dependency afterok:${first} --error train.err python train.py$`
      )
    );
    await press('Submit one like this…');
    const dialog = page.getByRole('dialog');
    const field = (name: string) =>
      dialog.getByRole('textbox', { name, exact: true });
    await expect(field('Command')).toHaveValue('python train.py');
    await expect(field('GPUs')).toHaveValue('2');
    await expect(dialog).toContainText('Starts now on GPUs');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  await test.step('is there again after a reload', async () => {
    await page.reload();
    await expect(job).toContainText('It ended with exit code 3.');
    await expect(log).toContainText(/beat \d/);
    await press('Requeue');
    await expect(job.getByText(/^Attempt 2$/)).toBeVisible();
  });
});

test('an output of a gigabyte is opened at once', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  await notebooks.write('big.py', '');
  const write = `
with open("big.out", "r+b") as file:
    file.write(b"the first line\\n")
    file.seek(600_000_000)
    file.write(b"\\nthe needle\\n")
    file.truncate(2**30)
    file.seek(2**30)
    file.write(b"\\nthe last line\\n")`;
  await notebooks.write('big.out', '');
  const label = await submit(page, tmpPath, {
    ...{ command: ['python', '-c', write], cpus: 0, log_max: '4G' },
    ...{ output: 'big.out', open_mode: 'append', name: 'big' }
  });
  await expect(panel.root).toBeVisible();
  const job = await openJob(page, label);
  const log = job.getByRole('log');
  await expect(job).toContainText('COMPLETED');
  await expect(log).toContainText('the last line');
  await expect(job).toContainText('1.0 GiB');
  await job.getByRole('searchbox').fill('needle');
  await job.getByRole('searchbox').press('Enter');
  await expect(log.locator('.jp-mod-found')).toHaveText('the needle');
  await job.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(log).toContainText('the first line');
  expect(await log.locator('.jp-dist-JobLog-row').count()).toBeLessThan(150);
});

test('the notebook of a job is shown while it runs', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  const cell = (source: string, index: number) => ({
    ...{ id: `cell-${index}`, cell_type: 'code', source, metadata: {} },
    ...{ outputs: [], execution_count: null }
  });
  const cells = [
    'print("one is", 1)',
    'import os, time\nwhile not os.path.exists("go"): time.sleep(0.1)\nprint("two is", 2)'
  ].map(cell);
  const kernelspec = { name: 'python3', display_name: 'Python 3' };
  await notebooks.write(
    'fit.ipynb',
    JSON.stringify({
      ...{ nbformat: 4, nbformat_minor: 5, metadata: { kernelspec }, cells }
    })
  );
  const label = await submit(page, tmpPath, {
    notebook: `${tmpPath}/fit.ipynb`,
    cpus: 0
  });
  await expect(panel.root).toBeVisible();
  const job = await openJob(page, label);
  await expect(job).toContainText('RUNNING');
  await job.getByRole('button', { name: 'Open notebook' }).click();
  const live = page.getByRole('main').locator('.jp-dist-LiveNotebook');
  const outputs = live.locator('.jp-OutputArea-output');
  await expect(outputs.first()).toHaveText('one is 1');
  await expect(
    page.getByText(`Read-only: job ${label} is writing this notebook.`)
  ).toBeVisible();
  await live.locator('.cm-content').first().click();
  await page.keyboard.type('changed');
  await expect(live.locator('.cm-content').first()).toHaveText(
    'print("one is", 1)'
  );
  await notebooks.write('go', '');
  await expect(outputs.nth(1)).toHaveText('two is 2');
  await expect(
    page.getByText(`Read-only: job ${label} has ended.`)
  ).toBeVisible();
  await page.getByRole('button', { name: 'Open as document' }).click();
  await expect(page.locator('.jp-NotebookPanel:visible')).toContainText(
    'two is 2'
  );
  await expect(live).toHaveCount(0);
});
