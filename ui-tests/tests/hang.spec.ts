import { galata } from '@jupyterlab/galata';

import { expectAccessible } from './accessibility';
import { show } from './pictures';
import { expect, test } from './support';

// Nobody wants to wait for long here.
test.use({
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
});

const START = `\
import os
os.environ["JUPYTER_DIST_WAIT_LIMIT"] = "1"
%load_ext jupyter_dist_server
%dist_init -n 2`;
const STEP = `\
%%distributed
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(4, 4))
loss = model(torch.ones(2, 4)).sum()`;

test('a rank that is stopped is told of until it is restarted, also after the cell was interrupted', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('stopped.ipynb', [
    START,
    '%%distributed\nprint("before")',
    '%%distributed\ndist.barrier()',
    '%%distributed\nprint("rank", rank, "is there")'
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(notebooks.output(1)).toContainText('before');
  await expect(panel.tile(1)).toContainText('idle');
  process.kill((await panel.pids())[1], 'SIGSTOP');
  await expect(panel.tile(1)).toContainText('does not respond');
  await notebooks.run(2);
  await panel
    .state('Rank 1 never joined')
    .getByRole('button', { name: 'Interrupt', exact: true })
    .click();
  await expect(panel.tile(0)).toContainText('idle');

  await test.step('everything says so', async () => {
    await expect(panel.state('Rank 1 does not respond')).toContainText(
      'its process is stopped (SIGSTOP, a debugger).'
    );
    await expect(panel.state('1 rank does not respond')).toBeVisible();
    await expect(panel.tile(1)).toContainText('does not respond');
    await expect(
      page.locator('.jp-dist-RanksItem:visible'),
      'the toolbar'
    ).toContainText('rank 1 does not respond');
    await expect(page.locator('.jp-dist-StatusItem')).toContainText(
      'rank 1 does not respond'
    );
    await panel.expectRight();
    await show(panel.root, 'stopped');
    const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(2);
    await expectAccessible(page, ['.jp-dist-FailureActions']);
    await expect(cell).toContainText(
      'Rank 1 did not stop: its process is stopped.'
    );
    await expect(cell.locator('.jp-InputPrompt')).not.toContainText('*');
    await show(cell, 'stopped-cell');
  });

  await test.step('it is restarted below the cell', async () => {
    await page
      .locator('.jp-NotebookPanel:visible .jp-Cell')
      .nth(2)
      .getByRole('button', { name: 'Restart rank 1…' })
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Restart' }).click();
    await panel.expectRunning(2);
    await notebooks.run(3);
    await expect(notebooks.output(3)).toContainText('rank 1 is there');
  });
});

test('a step of DDP that a rank leaves out is explained, ended by one click, and put right', async ({
  panel,
  notebooks
}) => {
  await notebooks.open('hang.ipynb', [
    START,
    `${STEP}\nif rank == 0:\n    loss.backward()`,
    `${STEP}\nloss.backward()\nprint("gradients:", model.module.bias.grad.sum().item())`
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  const why =
    /Rank 0 waits in all_reduce #\d+ \(20 × float32\), begun by `?loss\.backward\(\)`? at In\[2\] line 6\. Rank 1 never began it: it has finished its cell\./;

  await test.step('the panel and the cell say why', async () => {
    const note = panel.state('Rank 1 never joined all_reduce');
    await expect(note).toContainText(why);
    await expect(notebooks.output(1)).toContainText(why);
    await panel.expectRight();
  });

  await test.step('one click ends it', async () => {
    await panel
      .state('Rank 1 never joined')
      .getByRole('button', { name: 'Interrupt', exact: true })
      .click();
    await expect(notebooks.output(1)).toContainText(
      'Interrupted: rank 0 was in backward (line 6)'
    );
    await expect(panel.state('Rank 1 never joined')).toBeHidden();
  });

  await test.step('the notebook goes on', async () => {
    await notebooks.run(2);
    await expect(notebooks.output(2)).toContainText('gradients: 8');
  });
});
