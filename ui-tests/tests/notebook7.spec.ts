import { expect, test } from '@playwright/test';

const CELLS = ['%load_ext jupyter_dist_server', '%%distributed\nprint(rank)'];

test('in Notebook 7 too: the panel, the toolbar and cells on ranks', async ({
  page
}) => {
  const content = {
    cells: CELLS.map(source => ({
      cell_type: 'code',
      source,
      metadata: {},
      outputs: [],
      execution_count: null
    })),
    metadata: { kernelspec: { name: 'python3', display_name: 'Python 3' } },
    nbformat: 4,
    nbformat_minor: 4
  };
  const answer = await page.request.put('api/contents/seven.ipynb', {
    data: { type: 'notebook', format: 'json', content }
  });
  expect(answer.ok()).toBe(true);
  await page.goto('notebooks/seven.ipynb');

  const ranks = page.getByRole('button', { name: /^Ranks: / });
  await ranks.click();
  await page.getByRole('menuitem', { name: 'Show Ranks & GPUs' }).click();
  const panel = page.getByRole('region', { name: 'Ranks & GPUs' });
  await expect(panel).toBeVisible();

  await panel.getByRole('spinbutton', { name: 'Ranks' }).fill('2');
  await panel.getByRole('button', { name: 'Start', exact: true }).click();
  await expect(ranks).toHaveText('Ranks: 2');

  const cells = page.locator('.jp-Notebook .jp-CodeCell');
  await cells.first().locator('.cm-content').click();
  for (const _ of CELLS) {
    await page.keyboard.press('Shift+Enter');
  }
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
