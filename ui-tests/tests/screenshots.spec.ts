/*
 * Draws the pictures of the documentation: `jlpm screenshots`, or `make screenshots`.
 */

import { readFileSync } from 'fs';
import { resolve } from 'path';

import { FAKE_GPUS_URL } from '../playwright.config';
import { draw, LOOK, tidy } from './pictures';
import { expect, test } from './support';

const TITLE = `# Digits on four ranks

Each rank is a separate Python process. A cell that begins with \`%%distributed\` runs on all of them.`;

const INIT = `%load_ext jupyter_dist_server
%dist_init -n 4`;

const DATA = `%%distributed
from sklearn.datasets import load_digits
images, labels = map(torch.from_numpy, load_digits(return_X_y=True))
x, y = images[rank::world_size].float() / 16, labels[rank::world_size]
total = torch.tensor(len(x))
dist.all_reduce(total)
print(f"{len(x)} of {total} images")`;

const TRAIN = `%%distributed
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(100):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print(f"loss {loss.item():.3f}")`;

const UNEVEN = `%%distributed
import time
while True:
    for step in range(40):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    time.sleep(0.04 * rank)  # as if their GPUs were not equally fast`;

const LATE = `%%distributed
import time

if rank == 3:
    time.sleep(60)
dist.barrier()`;

const SLOW = `%%distributed --profile
import time
from torch.profiler import record_function

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    with record_function("data"):
        time.sleep(0.03 if rank == 2 else 0)
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()`;

const GET_STARTED = resolve(__dirname, '../../docs/get-started.md');

test.use(LOOK);

// Pictures need no quick machine.
test.describe.configure({ timeout: 300_000 });

test('the cells of “Get started”, on the CPU', async ({
  page,
  panel,
  notebooks
}) => {
  const blocks = readFileSync(GET_STARTED, 'utf8').matchAll(
    /^```python\n(.*?)\n```$/gms
  );
  const cells = [...blocks].map(([, code]) => code);
  const late = cells.findIndex(code => code.includes('time.sleep'));
  await notebooks.open('Untitled.ipynb', cells.slice(0, late + 1));
  await tidy(page);
  for (let cell = 0; cell < late; cell++) {
    await notebooks.run(cell);
    await panel.expectRunning(2);
  }
  await notebooks.run(late);
  await expect(notebooks.output(late)).toContainText('Rank 1 has not begun');
  await expect(panel.pool).toContainText('Rank 1 has not joined');
  await draw(page, 'get-started');
});

test.describe('on a pretend machine', () => {
  test.use({
    baseURL: FAKE_GPUS_URL,
    viewport: { width: 1280, height: 1080 }
  });

  test('eight GPUs, of which four have ranks', async ({
    page,
    panel,
    notebooks
  }) => {
    const cells = [INIT, DATA, TRAIN, UNEVEN];
    await notebooks.open('digits.ipynb', cells, TITLE);
    await tidy(page);
    await notebooks.run(1);
    await panel.expectRunning(4);
    for (const cell of [2, 3]) {
      await notebooks.run(cell);
      await expect(notebooks.output(cell).getByRole('tablist')).toBeVisible();
    }
    await panel.expectRunning(4);
    await notebooks.run(4);
    // Long enough for curves.
    await expect(panel.pool.getByText(/^cell \[\d+\] · 4\d s$/)).toBeVisible({
      timeout: 180_000
    });
    await draw(page, 'panel-gpus');
    await panel.button('Interrupt').click();
    await panel.expectRunning(4);
    await notebooks.run(3);
    await page.evaluate(async () => {
      await window.jupyterapp.commands.execute('jupyter-dist:open-timeline');
    });
    const timeline = page.locator('#jupyter-dist-timeline');
    // Before that nobody looked, and there may be gaps.
    await timeline.getByLabel('Range', { exact: true }).selectOption('1');
    await timeline.getByLabel('GPUs', { exact: true }).selectOption('All GPUs');
    await expect(timeline.getByRole('img', { name: /^GPU 7/ })).toBeVisible();
    await draw(page, 'timeline', timeline);
  });

  test.describe('in a low window', () => {
    test.use({ viewport: { width: 1280, height: 720 } });

    test('ranks that wait for another one', async ({
      page,
      panel,
      notebooks
    }) => {
      await notebooks.open('late.ipynb', [INIT, LATE]);
      await tidy(page);
      await notebooks.run(0);
      await panel.expectRunning(4);
      await notebooks.run(1);
      await expect(notebooks.output(1)).toContainText('Rank 3 has not begun');
      await expect(panel.pool).toContainText('Rank 3 has not joined');
      await draw(page, 'hang');
      await panel.pool
        .getByRole('button', { name: 'Interrupt' })
        .first()
        .click();
      await panel.expectRunning(4);
    });

    test('a profiled cell', async ({ page, panel, notebooks }) => {
      await notebooks.open('slow.ipynb', [INIT, SLOW]);
      await tidy(page);
      await notebooks.run(0);
      await panel.expectRunning(4);
      await notebooks.run(1);
      const trace = notebooks.output(1).getByText('Open in Perfetto');
      await expect(trace).toBeVisible();
      await trace.scrollIntoViewIfNeeded();
      await draw(page, 'profile');
    });
  });
});
