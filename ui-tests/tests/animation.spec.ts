/*
 * Takes the pictures of the README's animation: `make animation`.
 */
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { mkdirSync } from 'fs';
import { resolve } from 'path';

import { FAKE_GPUS_URL } from '../playwright.config';
import { hidePaths, LOOK, tidy } from './pictures';
import { expect, test } from './support';

const SUM = `%%distributed
total = torch.tensor(rank + 1)
dist.all_reduce(total)
print(f"I am rank {rank}")
print(f"The sum is {total.item()}")`;

const TRAIN = `%%distributed
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(8, 8))
loss = model(torch.rand(4, 8)).square().mean()
if rank != 3:  # a mistake
    loss.backward()`;

/** Of the pointer, on its way to a button. */
const STEPS = 8;

test.use({
  ...LOOK,
  baseURL: FAKE_GPUS_URL,
  viewport: { width: 960, height: 640 }
});

test.describe.configure({ timeout: 300_000 });

/** Pictures of a page; their names end with the seconds for which the animation shows them. */
class Film {
  constructor(
    private readonly _page: IJupyterLabPageFixture,
    private readonly _folder: string
  ) {
    mkdirSync(_folder, { recursive: true });
  }

  private _at = [560, 560];
  private _count = 0;

  async still(seconds: number): Promise<void> {
    await hidePaths(this._page);
    const number = `${this._count++}`.padStart(3, '0');
    await this._page.screenshot({
      path: `${this._folder}/${number}-${seconds}.png`
    });
  }

  /** Films what changes until something is there; waits pass quickly. */
  async until(there: Locator, seconds = 0.1): Promise<void> {
    const end = Date.now() + 60_000;
    while (!(await there.isVisible()) && Date.now() < end) {
      await this.still(seconds);
    }
    await expect(there).toBeVisible();
  }

  /** Moves the pointer to a button and clicks it. */
  async click(button: Locator): Promise<void> {
    const { x, y, width, height } = (await button.boundingBox())!;
    const to = [x + width / 2, y + height / 2];
    for (let step = 1; step <= STEPS; step++) {
      const part = step / STEPS;
      const [left, top] = this._at.map(
        (from, i) => from + part * (to[i] - from)
      );
      await this._page.mouse.move(left, top);
      await this.still(0.06);
    }
    this._at = to;
    await this.still(0.5);
    await button.click();
  }
}

/** Screenshots have no pointer. */
async function showPointer(page: IJupyterLabPageFixture): Promise<void> {
  await page.evaluate(() => {
    const pointer = document.createElement('div');
    pointer.innerHTML =
      '<svg width="20" height="20"><path d="M1 1v15l4-4 3 6 3-1-3-6h6z" stroke="#fff"/></svg>';
    pointer.style.cssText =
      'position: fixed; left: -30px; top: 0; z-index: 100000; pointer-events: none';
    document.body.append(pointer);
    document.addEventListener('mousemove', event => {
      pointer.style.left = `${event.clientX}px`;
      pointer.style.top = `${event.clientY}px`;
    });
  });
}

for (const theme of ['light', 'dark']) {
  test(`from the start to a hang and on, in the ${theme} theme`, async ({
    page,
    panel,
    notebooks
  }) => {
    const folder = resolve(__dirname, '../test-results/animation', theme);
    const film = new Film(page, folder);
    await notebooks.open('train.ipynb', [SUM, TRAIN]);
    await tidy(page);
    if (theme === 'dark') {
      await page.theme.setDarkTheme();
    }
    await showPointer(page);
    await expect(panel.form.getByRole('checkbox')).toHaveCount(8);
    await panel.stepper.fill('4');
    await film.still(1);

    await film.click(panel.button('Start'));
    await film.until(panel.tiles.filter({ hasText: 'idle' }).nth(3));
    await panel.expectRunning(4);
    await film.still(1.5);

    await notebooks.run(0);
    await film.until(notebooks.output(0).getByText('The sum is'));
    await panel.expectRunning(4);
    await film.still(2.5);

    await notebooks.run(1);
    // For 10 seconds, there is little to see.
    const verdict = notebooks.output(1).getByText('Rank 3 never began');
    await film.until(verdict, 0.04);
    await film.until(panel.state('Rank 3 never joined'));
    await film.still(4);

    await film.click(
      panel.state('Rank 3 never joined').getByRole('button', {
        name: 'Interrupt',
        exact: true
      })
    );
    await film.until(panel.tiles.filter({ hasText: 'idle' }).nth(3));
    await panel.expectRunning(4);
    await film.still(3);
  });
}
