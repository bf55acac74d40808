import { galata } from '@jupyterlab/galata';

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

test('a step of DDP that a rank leaves out is explained, ended by one click, and put right', async ({
  panel,
  notebooks
}) => {
  test.setTimeout(240_000);
  await notebooks.open('hang.ipynb', [
    START,
    `${STEP}\nif rank == 0:\n    loss.backward()`,
    `${STEP}\nloss.backward()\nprint("gradients:", model.module.bias.grad.sum().item())`
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  const why =
    /Rank 0 waits in all_reduce #\d+ \(20 × float32\), begun by `loss\.backward\(\)` at In\[2\] line 6\. Rank 1 never began it: it has finished its cell\./;

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
