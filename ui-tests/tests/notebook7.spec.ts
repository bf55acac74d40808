import { expect, test } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';

import { setBreakpoint, variable } from './debugging';

const CELLS = ['%load_ext jupyter_dist_server', '%%distributed\nprint(rank)'];
const START = '%load_ext jupyter_dist_server\n%dist_init -n 2';

/** Opens a new notebook with these cells; answers its cells. */
async function open(
  page: Page,
  name: string,
  sources: string[]
): Promise<Locator> {
  const content = {
    cells: sources.map((source, index) => ({
      cell_type: 'code',
      id: `cell-${index}`,
      source,
      metadata: {},
      outputs: [],
      execution_count: null
    })),
    metadata: { kernelspec: { name: 'python3', display_name: 'Python 3' } },
    nbformat: 4,
    nbformat_minor: 5
  };
  const answer = await page.request.put(`api/contents/${name}`, {
    data: { type: 'notebook', format: 'json', content }
  });
  expect(answer.ok()).toBe(true);
  await page.goto(`notebooks/${name}`);
  return page.locator('.jp-Notebook .jp-CodeCell');
}

/** Runs the first cells, one after the other. */
async function run(page: Page, cells: Locator, count: number): Promise<void> {
  // What is run before the notebook has its kernel is not run.
  await expect(async () => {
    await cells.first().locator('.cm-content').click();
    await page.keyboard.press('Shift+Enter');
    const prompt = cells.first().locator('.jp-InputPrompt');
    await expect(prompt).not.toHaveText('[ ]:', { timeout: 3000 });
  }).toPass();
  for (let index = 1; index < count; index++) {
    await page.keyboard.press('Shift+Enter');
  }
}

test.afterEach(async ({ page }) => {
  const answer = await page.request.get('api/sessions');
  for (const { id, path } of await answer.json()) {
    if (path.startsWith('seven')) {
      await page.request.delete(`api/sessions/${id}`);
    }
  }
});

test('in Notebook 7 too: the panel, the toolbar and cells on ranks', async ({
  page
}) => {
  const cells = await open(page, 'seven.ipynb', CELLS);

  const ranks = page.getByRole('button', { name: /^Ranks: / });
  await ranks.click();
  await page.getByRole('menuitem', { name: 'Show Ranks & GPUs' }).click();
  const panel = page.getByRole('region', { name: 'Ranks & GPUs' });
  await expect(panel).toBeVisible();

  await panel.getByRole('spinbutton', { name: 'Ranks' }).fill('2');
  await panel.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(ranks).toHaveText('Ranks: 2');

  await run(page, cells, CELLS.length);
  const output = cells.nth(1).locator('.jp-Cell-outputArea');
  await expect(output).toContainText(/0[^]*1/);

  // The main area has room for the notebook alone.
  const openTimeline = async () => {
    await page.keyboard.press('ControlOrMeta+Shift+C');
    const palette = page.locator('.jp-ModalCommandPalette');
    await palette.getByRole('textbox').fill('GPU Timeline');
    await palette
      .locator('.lm-CommandPalette-itemLabel', { hasText: 'GPU Timeline' })
      .click();
  };
  await openTimeline();
  const timeline = page.locator('.jp-dist-Timeline');
  await expect(timeline).toContainText('No GPUs to show');
  const heightOf = async () => (await timeline.boundingBox())?.height;
  await expect.poll(heightOf).toBeGreaterThan(200);

  // Notebook 7.2 has no area below the notebook: the timeline is beside it.
  if (await page.locator('#jp-down-stack').count()) {
    // A height that the user has given the area stays when it is opened again.
    const handle = page.locator(
      '#jp-main-vsplit-panel > .lm-SplitPanel-handle:not(.lm-mod-hidden)'
    );
    await handle.hover();
    await page.mouse.down();
    await page.mouse.move(640, 650, { steps: 4 });
    await page.mouse.up();
    await expect.poll(heightOf).toBeLessThan(150);
    const dragged = await heightOf();
    await page.locator('#jp-down-stack .jp-icon-hover').last().click();
    await expect(timeline).toHaveCount(0);
    await openTimeline();
    await expect.poll(heightOf).toBeCloseTo(dragged ?? 0, 0);
  }

  await panel.getByRole('button', { name: 'Stop…', exact: true }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: 'Stop', exact: true })
    .click();
  await expect(ranks).toHaveText('Ranks: 0');
});

/** A cell that goes on once a file is there. */
const waiting = (file: string) => `import os, time
print('first')
while not os.path.exists('${file}'):
    time.sleep(0.05)
print('last')`;

test('in Notebook 7 too: cells that run go on showing what they do after a reload, and in a second window', async ({
  page,
  context
}) => {
  const cells = await open(page, 'sevenLive.ipynb', [
    START,
    waiting('sevenPlain'),
    `%%distributed\n${waiting('sevenRanks')}`,
    "print('got', input('Name?'))",
    `%%distributed\n${waiting('never')}`
  ]);
  const output = (index: number) => cells.nth(index).locator('.jp-OutputArea');
  const write = async (name: string) => {
    const answer = await page.request.put(`api/contents/${name}`, {
      data: { type: 'file', format: 'text', content: '' }
    });
    expect(answer.ok()).toBe(true);
  };
  await run(page, cells, 5);
  await expect(output(1)).toContainText('first');
  await page.reload();
  await expect(output(1)).toContainText('first');
  await write('sevenPlain');
  await expect(output(1)).toContainText('last');
  await expect(output(2)).toContainText('first');
  await page.reload();
  await expect(output(1)).toContainText('last');
  await expect(output(2)).toContainText('first');
  const other = await context.newPage();
  await other.goto('notebooks/sevenLive.ipynb');
  const there = other.locator('.jp-Notebook .jp-CodeCell').nth(2);
  await expect(there).toContainText('first');
  await write('sevenRanks');
  for (const cell of [cells.nth(2), there]) {
    await expect(cell).toContainText('last');
    await expect(cell).not.toContainText('[*]');
  }
  await other.close();

  await expect(output(3)).toContainText('Name?');
  await page.reload();
  const field = page.locator('.jp-Stdin-input');
  await field.fill('Ada');
  await field.press('Enter');
  await expect(output(3)).toContainText('got Ada');
  await expect(output(4)).toContainText('first');
  await page.getByRole('button', { name: 'Interrupt the kernel' }).click();
  await expect(output(4)).toContainText('Interrupted');
  for (const name of ['sevenPlain', 'sevenRanks']) {
    await page.request.delete(`api/contents/${name}`);
  }
});

const STOPS = `\
%%distributed
def f(x):
    y = torch.ones(2) * x
    return y

f(rank + 5)
print("end of", rank)`;

test('in Notebook 7 too: the debugger stops ranks, and shows the one that is chosen', async ({
  page
}) => {
  const cells = await open(page, 'sevenDebug.ipynb', [START, STOPS]);
  await run(page, cells, 1);
  await page.getByRole('button', { name: 'Ranks: 2' }).click();
  await page.getByRole('menuitem', { name: 'Show Ranks & GPUs' }).click();
  const panel = page.getByRole('region', { name: 'Ranks & GPUs' });
  const tile = (rank: number) =>
    panel.getByRole('listitem', { name: `Rank ${rank}`, exact: true });

  const bug = page.locator('.jp-DebuggerBugButton');
  await bug.click();
  await expect(bug).toHaveAttribute('aria-pressed', 'true');
  await setBreakpoint(cells.nth(1), 4);
  await cells.nth(1).locator('.cm-content').click();
  await page.keyboard.press('Shift+Enter');
  for (const rank of [0, 1]) {
    await expect(tile(rank)).toContainText('stopped · In[2] line 4');
    await tile(rank).click({ button: 'right' });
    await page.getByRole('menuitem', { name: 'Debug' }).click();
    await expect(variable(page, 'x', `${5 + rank}`)).toBeVisible();
  }
  await page.getByRole('button', { name: 'Continue (F9)' }).click();
  await expect(cells.nth(1)).toContainText('end of 0');
  await expect(cells.nth(1)).toContainText('end of 1');
});
