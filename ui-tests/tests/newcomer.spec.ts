import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { NotebookPanel } from '@jupyterlab/notebook';

import { FAKE_GPUS_URL } from '../playwright.config';
import { draw, LOOK, tidy } from './pictures';
import { cancelJobs, expect, test } from './support';

const EXAMPLE = 'ddp_digits.ipynb';
/** The cells of the example with their place in the file. */
const CELL = { train: 10, figure: 17 };

const INIT = '%load_ext jupyter_dist_server\n%dist_init';

const TRAIN = `%%distributed
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(torch.nn.Linear(64, 10))
loss = model(torch.ones(1, 64)).square().mean()
loss.backward()
print(f"loss {loss.item():.3f}")`;

test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

test.afterEach(({ page }) => cancelJobs(page));

test('what a newcomer does first, on a machine with eight GPUs', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
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
    await timeline
      .getByLabel('Range', { exact: true })
      .selectOption('last 5 minutes');
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

test('what a newcomer does when the GPUs are taken', async ({
  page,
  panel,
  notebooks
}) => {
  // All but the GPU on which another process is.
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: {
      ...{ command: ['sleep', '3600'], name: 'pretrain' },
      ...{ gpus: 7, cpus: 0, time: '60' }
    }
  });
  const other = (await answer.json()).jobs[0].label;
  const details = `jupyter-dist/jobs/${other}/details`;
  await expect
    .poll(
      async () => (await (await page.request.get(details)).json()).job.state
    )
    .toBe('RUNNING');
  await notebooks.open('digits.ipynb', [INIT, TRAIN]);
  await tidy(page);

  await test.step('waits in line', async () => {
    await panel.stepper.fill('2');
    await panel.button('Start').click();
    await expect(panel.pool.getByRole('alert')).toContainText('No GPU is free');
    await draw(page, 'newcomer-taken');
    await panel.pool
      .getByRole('button', { name: /^Wait \(#1 in line, by/ })
      .click();
    await expect(panel.state('Waiting for GPUs')).toBeVisible();
    await expect(panel.pool).toContainText('#1 in line');
  });

  await test.step('is told that they are free, and runs the notebook', async () => {
    await page.request.delete(`jupyter-dist/jobs/${other}?now=1`);
    await expect(
      page.getByText('The GPUs are free: 2 ranks of digits.ipynb are ready.')
    ).toBeVisible();
    await panel.expectRunning(2);
    for (const cell of [0, 1]) {
      await notebooks.run(cell);
    }
    await expect(notebooks.output(1)).toContainText(/loss \d/);
  });

  await test.step('runs the same notebook as a job', async () => {
    await page.getByRole('menuitem', { name: 'Run', exact: true }).click();
    // With a torch for CUDA, it names the number of GPUs, which is filled in then.
    await page.getByRole('menuitem', { name: /^Run as Job/ }).click();
    const dialog = page.getByRole('dialog');
    // By then the dialog has put the focus where it wants it.
    await expect(dialog).toContainText('Starts now');
    await dialog.getByRole('textbox', { name: 'GPUs', exact: true }).fill('2');
    await expect(dialog).toContainText('Starts now on GPUs');
    await dialog.getByRole('button', { name: 'Submit', exact: true }).click();
    await expect(dialog).toBeHidden();
  });

  await test.step('looks how the job went', async () => {
    await panel.root.getByRole('heading', { name: /^Queue/ }).click();
    await panel.root
      .getByRole('region', { name: 'Queue Section' })
      .getByRole('button', { name: /^\d+ digits\.ipynb$/ })
      .click();
    const job = page.getByRole('main').locator('.jp-dist-JobDetails:visible');
    await expect(job).toContainText('digits.ipynb has completed.', {
      timeout: 120_000
    });
    await expect(job.getByRole('log')).toContainText(/loss \d/);
    // Three sections would leave the pool more room than it fills.
    await panel.root.getByRole('heading', { name: /^Pool/ }).click();
    await draw(page, 'newcomer-job');
  });
});
