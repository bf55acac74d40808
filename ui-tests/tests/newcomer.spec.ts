import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { NotebookPanel } from '@jupyterlab/notebook';

import { FAKE_GPUS_URL } from '../playwright.config';
import { draw, LOOK, tidy } from './pictures';
import { expect, test } from './support';

const EXAMPLE = 'ddp_digits.ipynb';
/** The cells of the example with their place in the file. */
const CELL = { train: 10, figure: 17 };

test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

test('what a newcomer does first, on a machine with eight GPUs', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  test.setTimeout(240_000);
  const example = join(__dirname, '../../examples', EXAMPLE);
  await page.contents.uploadContent(
    await readFile(example, 'utf8'),
    'text',
    `${tmpPath}/${EXAMPLE}`
  );
  await page.evaluate(async path => {
    const panel = await window.jupyterapp.commands.execute('docmanager:open', {
      path
    });
    await panel.sessionContext.ready;
  }, `${tmpPath}/${EXAMPLE}`);
  await tidy(page);

  await test.step('starts 4 ranks on 4 of 8 GPUs from the panel', async () => {
    const chip = (gpu: number) =>
      panel.form.getByRole('checkbox', { name: `GPU ${gpu}`, exact: true });
    for (const gpu of [1, 2, 4, 5]) {
      await chip(gpu).check();
    }
    await expect(panel.stepper).toHaveValue('4');
    await draw(page, 'newcomer-start');
    await panel.button('Start').click();
    await panel.expectRunning(4);
    await expect(panel.tile(2)).toContainText('GPU 4');
  });

  await test.step('opens the timeline', async () => {
    await panel.gpus.getByRole('button', { name: 'Open timeline' }).click();
    await page.evaluate(() => {
      const { shell } = window.jupyterapp;
      const [timeline] = [...shell.widgets('main')].filter(
        ({ id }) => id === 'jupyter-dist-timeline'
      );
      shell.add(timeline, 'main', { mode: 'split-bottom' });
    });
    await notebooks.turnTo(EXAMPLE);
    // The button was below all GPUs.
    await panel.gpus.evaluate(node => node.scrollTo(0, 0));
  });

  await test.step('runs the example, and sees its cells on the timeline', async () => {
    await page.evaluate(async last => {
      const { commands, shell } = window.jupyterapp;
      const { content } = shell.currentWidget as NotebookPanel;
      // All but the last cell, which stops the ranks.
      content.activeCellIndex = last + 1;
      await commands.execute('notebook:run-all-above');
    }, CELL.figure);
    await expect(notebooks.output(CELL.figure).locator('img')).toBeVisible({
      timeout: 90_000
    });
    await expect(notebooks.output(CELL.train)).toContainText('epoch 15');
    const timeline = page.locator('#jupyter-dist-timeline');
    await timeline.getByLabel('Range').selectOption('last 1 minute');
    const cells = timeline.getByRole('group', { name: 'Cells on ranks' });
    await expect(
      cells
        .getByRole('button', { name: /^(Cell \[\d+\] ran|\d+ cells)/ })
        .last()
    ).toBeVisible();
    await draw(page, 'newcomer-run');
  });

  const choose = async (rank: number, item: string) => {
    await panel
      .tile(rank)
      .getByRole('button', { name: `Menu of rank ${rank}` })
      .click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  const confirm = async (answer: string) => {
    await page
      .getByRole('dialog')
      .getByRole('button', { name: answer, exact: true })
      .click();
  };

  await test.step('kills a rank from its menu, and restarts it', async () => {
    const before = await panel.pids();
    await choose(3, 'Kill…');
    await confirm('Kill');
    await expect(panel.tile(3)).toContainText('dead');
    await draw(page, 'newcomer-dead');
    // There is nothing to lose any more, so nobody asks.
    await choose(3, 'Restart');
    await panel.expectRunning(4);
    const after = await panel.pids();
    expect(after.slice(0, 3)).toEqual(before.slice(0, 3));
    expect(after[3]).not.toBe(before[3]);
  });

  await test.step('stops the pool', async () => {
    await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
    await expect(panel.form).toBeVisible();
  });
});
