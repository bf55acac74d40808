import type { NotebookPanel } from '@jupyterlab/notebook';

import { expect, test } from '../tests/support';
import { measureTasks, sayTasks } from './mainThread';
import { Tape } from './tape';

const HEADER = 'application/vnd.jupyter-dist.ranks+json';
const CELL = `%%distributed
for i in range(20_000):
    print('step', i, 'rank', rank, 'loss', 1 / (i + 1 + rank))`;
/** Milliseconds; longer tasks are felt. */
const LIMIT = 100;

test('8 ranks print 20,000 different lines each', async ({
  browser,
  page,
  notebooks
}) => {
  // The fixture's page is a proxy, which hears no events.
  const tape = new Tape(page.context().pages()[0]);
  await tape.install();
  await page.reload();
  await notebooks.open('long.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 8',
    CELL,
    CELL,
    CELL
  ]);
  await notebooks.run(0);
  await expect(notebooks.output(0)).toContainText('8 ranks ready');
  const run = (cell: number) =>
    page.evaluate(async cell => {
      const { commands, shell } = window.jupyterapp;
      (shell.currentWidget as NotebookPanel).content.activeCellIndex = cell;
      await commands.execute('notebook:run-cell');
    }, cell);

  const lines = (cell: number, count: number) =>
    notebooks
      .output(cell)
      .getByRole('group', { name: `Output, ${count} lines` });
  const printed = (cell: number) =>
    measureTasks(browser, page, async () => {
      await run(cell);
      await expect(lines(cell, 160_000)).toBeVisible();
    });

  // The clock then also tells how long eight ranks, the kernel, and the server keep the page from
  // the processor.
  const live = await printed(1);
  sayTasks('While the cell runs, on as many cores as there are', live);
  await tape.play();
  const replayed = await printed(2);
  sayTasks('The same messages again, while the ranks are idle', replayed);
  const output = notebooks.output(2);
  const [all, ones] = [lines(2, 160_000), lines(2, 20_000)];
  expect(await all.locator('.jp-dist-Row').count()).toBeLessThan(200);

  const turning = await measureTasks(browser, page, async () => {
    for (const rank of [0, 3, 7]) {
      await output.getByRole('tab', { name: `Rank ${rank}` }).click();
      await expect(ones).toBeVisible();
    }
    await output.getByRole('tab', { name: 'Merged' }).click();
    await expect(all).toBeVisible();
  });
  sayTasks('Turning to other tabs', turning);

  const scrolling = await measureTasks(browser, page, () =>
    all.evaluate(async node => {
      for (let step = 0; step <= 100; step++) {
        node.scrollTop = (node.scrollHeight * step) / 100;
        await new Promise(requestAnimationFrame);
      }
    })
  );
  sayTasks('Scrolling through it', scrolling);

  await page.evaluate(mark => {
    const panel = window.jupyterapp.shell.currentWidget as NotebookPanel;
    panel.content.rendermime.removeMimeType(mark);
  }, HEADER);
  const stock = await measureTasks(browser, page, () => run(3));
  sayTasks(
    "JupyterLab's own renderers, which show 50 of about 240 parts, replayed",
    stock
  );

  expect(live.cpu[0]).toBeLessThan(LIMIT);
  for (const { clock } of [replayed, turning, scrolling]) {
    expect(clock[0]).toBeLessThan(LIMIT);
  }
});
