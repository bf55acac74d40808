import type { Locator } from '@playwright/test';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import { FAKE_GPUS_URL } from '../playwright.config';
import { AROUND, expectAccessibleInBothThemes } from './accessibility';
import { WIDTHS } from './narrow';
import { draw, LOOK } from './pictures';
import { cancelJobs, expect, test } from './support';

// Eight pretend GPUs; another process is on GPU 6, so that seven can be given to jobs.
test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

/** The panel's least width, at which JupyterLab opens it. */
const NARROW = 250;

/** Submits a job; answers its label. */
async function submit(
  page: IJupyterLabPageFixture,
  command: string[],
  options: object = {}
): Promise<string> {
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: { command, chdir: '/tmp', output: '/dev/null', ...options }
  });
  expect(answer.status()).toBe(201);
  return (await answer.json()).jobs[0].label;
}

/** Texts that are cut off, or that go on in another line. */
function brokenTexts(section: Locator): Promise<string[]> {
  return section.locator('.jp-dist-QueueRow').evaluateAll(rows =>
    rows.flatMap(row =>
      [...row.querySelectorAll('strong, span, button')]
        .filter(
          node =>
            node.scrollWidth > node.clientWidth + 1 ||
            node.getBoundingClientRect().height > 22 ||
            node.getBoundingClientRect().right >
              row.getBoundingClientRect().right + 6
        )
        .filter(node => getComputedStyle(node).display !== 'inline')
        .map(node => node.textContent ?? '')
    )
  );
}

test.afterEach(({ page }) => cancelJobs(page));

test('jobs wait in line, run, end, and are changed in the panel', async ({
  page,
  panel
}) => {
  const section = panel.root.getByRole('region', { name: 'Queue Section' });
  const row = (name: string) =>
    section.getByRole('listitem', { name, exact: true });
  const choose = async (name: string, item: string) => {
    await section
      .getByRole('button', { name: `Menu of ${name}`, exact: true })
      .click();
    await page.getByRole('menuitem', { name: item, exact: true }).click();
  };
  const notice = (text: string) =>
    page.locator('.jp-toastContainer, .Toastify').getByText(text);
  await page.sidebar.setWidth(NARROW, 'left');
  // Folds the pool and the GPUs away, and opens the queue.
  for (const index of [0, 1, 3]) {
    await panel.root.locator('.jp-AccordionPanel-title').nth(index).click();
  }

  const pick = (name: string) =>
    section
      .getByRole('button', { name, exact: true })
      .click({ modifiers: ['ControlOrMeta'] });
  const before = await page.request.get('jupyter-dist/jobs');
  const isFirst = (await before.json()).count === 0;

  await test.step('says what a job is', async () => {
    // Another try, or another test, leaves jobs that have ended.
    if (isFirst) {
      await expect(section).toContainText('A job is a command, a script');
    }
    await expect(
      section.getByRole('button', { name: 'Submit a job…' })
    ).toBeVisible();
    await panel.expectRight();
  });

  const sleep = ['sleep', '600'];
  const failed = await submit(page, ['false'], { name: 'preprocess' });
  const first = await submit(page, sleep, {
    ...{ gpus: 5, name: 'pretrain', time: '60' }
  });
  const second = await submit(page, sleep, { gpus: 4, name: 'finetune' });
  const third = await submit(page, sleep, { gpus: 4, name: 'evaluate' });
  const [pretrain, finetune, evaluate] = [
    `${first} pretrain`,
    `${second} finetune`,
    `${third} evaluate`
  ];

  await test.step('shows jobs as they come', async () => {
    await expect(row(pretrain)).toContainText(
      /Running \d+ (s|min).*until \d\d:\d\d/
    );
    await expect(row(pretrain)).toContainText('GPUs 0–4');
    await expect(row(finetune)).toContainText(/Waits for GPUs.*#1/);
    await expect(row(evaluate)).toContainText(/Waits.*#2/);
    await expect(panel.root).toContainText('1 running · 2 waiting');
    // No notebook is open: the count needs no pool.
    await page.getByRole('button', { name: '2 jobs wait' }).click();
    await expect(section).toBeVisible();
    await expect(
      notice(`Job ${failed} preprocess failed: It ended with exit code 1.`)
    ).toBeVisible();
  });

  await test.step('are dragged to another place in line', async () => {
    const [wide, narrow] = WIDTHS;
    for (const [width, moved, other] of [
      [wide, evaluate, finetune],
      [narrow, finetune, evaluate],
      [narrow, evaluate, finetune]
    ] as const) {
      await page.sidebar.setWidth(width, 'left');
      await row(moved).dragTo(row(other));
      await expect(row(moved)).toContainText('#1');
      await expect(row(other)).toContainText('#2');
    }
  });

  await test.step('holds, and releases', async () => {
    await choose(finetune, 'Hold');
    await expect(row(finetune)).toContainText('Held');
    await expect(row(evaluate)).toContainText('#1');
    await pick(finetune);
    await section.getByRole('button', { name: /Ended in the last/ }).click();
    await expect(row(`${failed} preprocess`)).toContainText(
      'FAILED exit code 1'
    );
  });

  await test.step('is readable at the least width and above it, in both themes', async () => {
    await page.setViewportSize({ width: 1280, height: 480 });
    for (const width of WIDTHS) {
      await page.sidebar.setWidth(width, 'left');
      await expect.poll(() => brokenTexts(section)).toEqual([]);
      await page.theme.setLightTheme();
      await expectAccessibleInBothThemes(page, [
        '#jupyter-dist-panel',
        ...AROUND
      ]);
    }
    await page.theme.setLightTheme();
    await draw(page, 'queue', panel.root);
    await choose(finetune, 'Release');
    await expect(row(finetune)).toContainText('#2');
  });

  await test.step('cancels what runs, after asking, and tells of its end', async () => {
    await choose(pretrain, 'Cancel…');
    const dialog = page.getByRole('dialog').filter({ hasText: 'Cancel job' });
    await dialog.getByRole('button', { name: 'Cancel Job' }).click();
    await expect(notice(`Job ${pretrain} was cancelled.`)).toBeVisible();
    await expect(row(evaluate)).toContainText('Running');
    await expect(row(pretrain)).toContainText('CANCELLED');
  });

  await test.step('requeues what has ended, and cancels several', async () => {
    await choose(pretrain, 'Requeue');
    await expect(row(pretrain)).toContainText('#2');
    for (const name of [evaluate, pretrain]) {
      await pick(name);
    }
    for (const width of WIDTHS) {
      await page.sidebar.setWidth(width, 'left');
      await expect.poll(() => brokenTexts(section)).toEqual([]);
      await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    }
    await choose(pretrain, 'Cancel 3 Jobs…');
    await page.getByRole('button', { name: 'Cancel Jobs' }).click();
    for (const name of [pretrain, finetune, evaluate]) {
      await expect(row(name)).toContainText('CANCELLED');
    }
    await expect(panel.root).not.toContainText('waiting');
  });
});
