import { expectAccessibleInBothThemes } from './accessibility';
import { WIDTHS } from './narrow';
import { draw, LOOK } from './pictures';
import { expect, test } from './support';

test.use(LOOK);

/** The panel's least width, at which JupyterLab opens it. */
const NARROW = 250;

const TRAIN = `%%distributed
from torch.distributed.tensor import distribute_tensor, init_device_mesh, Shard
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batch = torch.full((449 + rank, 64), rank, dtype=torch.float32)
parts = distribute_tensor(torch.ones(8, 64), init_device_mesh("cpu", (2,)), [Shard(0)])
history = torch.zeros(5_000_000)`;

const DIVERGE = `%%rank 1
model[1].running_mean += 0.5`;

const SLEEP = `%%rank 1
import time
time.sleep(600)`;

test('variables of all ranks, and where they differ', async ({
  page,
  panel,
  notebooks
}) => {
  const section = panel.root.getByRole('region', { name: 'Variables Section' });
  const fold = (name: string) =>
    panel.root.getByRole('heading', { name: new RegExp(`^${name}`) }).click();
  const rows = section.locator('tbody');
  const row = (name: string) =>
    rows.filter({
      has: page.getByRole('rowheader', { name, exact: true })
    });
  await page.sidebar.setWidth(NARROW, 'left');
  await notebooks.open('vars.ipynb', [TRAIN, DIVERGE, SLEEP]);
  await fold('Variables');
  await expect(section).toContainText('variables of running ranks are listed');
  await panel.start(2);
  await panel.expectRunning(2);

  await test.step('lists them after each cell', async () => {
    await expect(section).toContainText('The ranks have no variables yet.');
    await notebooks.run(0);
    await expect(row('model')).toContainText('equal');
    await expect(row('model')).toContainText('Sequential · 7 items');
    await expect(row('batch')).toContainText('differs');
    await expect(row('batch')).toContainText('Rank 1: Tensor (450, 64)');
    await expect(row('parts')).toContainText('sharded');
    await expect(row('parts')).toContainText('Rank 1: [4:8, 0:64]');
    await expect(row('history')).toContainText('not compared');
    await notebooks.run(1);
    await expect(row('model')).toContainText(
      /model\.1\.running_mean differs between rank 0 and rank 1 since In\[\d+\]/
    );
    await expect(panel.root).toContainText('5 · 2 differ');
  });

  await test.step('sorts, filters and compares what is large', async () => {
    await section.getByRole('button', { name: 'Memory' }).press('Enter');
    await expect(rows.first()).toContainText('history');
    await section.getByRole('searchbox').fill('adam');
    await expect(rows).toHaveCount(1);
    await section.getByRole('searchbox').fill('');
    await section.getByRole('button', { name: 'Check', exact: true }).click();
    await expect(row('history')).toContainText('equal');
    await expect(section).toContainText('RNG states');
  });

  await test.step('says that a rank runs a cell', async () => {
    await notebooks.run(2);
    await expect(section).toContainText('Rank 1 runs a cell.');
    await panel.button('Interrupt').click();
    await panel.expectRunning(2);
    await expect(section).not.toContainText('runs a cell');
  });

  await test.step('is readable at the least width and above it, in both themes', async () => {
    await section.getByRole('button', { name: 'Content' }).click();
    await fold('Pool');
    await expect(section.getByRole('status')).toHaveCount(0);
    for (const width of WIDTHS) {
      await page.sidebar.setWidth(width, 'left');
      await expect
        .poll(() =>
          section
            .locator('td, th > button, .jp-Button')
            .evaluateAll(nodes =>
              nodes
                .filter(node => node.scrollWidth > node.clientWidth + 1)
                .map(node => node.textContent)
            )
        )
        .toEqual([]);
      await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    }
    await page.theme.setLightTheme();
    await draw(page, 'variables', panel.root);
  });
});
