import type { Locator } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expect, Panel, test } from './support';

// Eight pretend GPUs, whose load follows the ranks; another process is on GPU 6, which is too hot.
test.use({ baseURL: FAKE_GPUS_URL });

function card(panel: Panel, gpu: number): Locator {
  return panel.gpus.getByRole('listitem', { name: `GPU ${gpu}`, exact: true });
}

function utilization(panel: Panel, gpu: number): Locator {
  return panel.gpus.getByRole('meter', { name: `Utilization of GPU ${gpu}` });
}

async function percent(meter: Locator): Promise<number> {
  return Number(await meter.getAttribute('aria-valuenow'));
}

test('eight GPUs, live', async ({ panel }) => {
  const cards = panel.gpus
    .getByRole('list', { name: 'GPUs', exact: true })
    .locator('> li');
  await expect(panel.root).toContainText('8 · 1 in use');
  // Those that nobody uses are folded away, all but a few.
  await expect(cards).toHaveCount(3);
  await expect(card(panel, 6)).toBeVisible();
  const [more, fewer] = ['Show 5 more', 'Show fewer'].map(name =>
    panel.gpus.getByRole('button', { name })
  );
  await more.click();
  await expect(cards).toHaveCount(8);
  await fewer.click();
  await expect(cards).toHaveCount(3);
  await more.click();
  await expect(cards).toHaveCount(8);

  await expect(card(panel, 3)).toContainText('H100 80GB HBM3');
  await expect(card(panel, 3)).toContainText('0.0 / 80 GiB');
  await expect(card(panel, 3)).toContainText(/\d+ W · 3\d °C/);
  await expect(card(panel, 3)).toContainText('not leased');

  await expect(utilization(panel, 6)).toHaveAttribute('aria-valuenow', '64');
  await expect(card(panel, 6)).toContainText('31.0 / 80 GiB');
  await expect(card(panel, 6)).toContainText('thermal slowdown · clocks');
  await expect(card(panel, 6)).toContainText(/python\S*, pid \d+/);
});

test('what does not change does not move', async ({ panel }) => {
  await expect(utilization(panel, 1)).toHaveAttribute('aria-valuenow', '0');
  await expect(card(panel, 1)).toContainText('72 W · 34 °C');
  await expect(utilization(panel, 6)).toHaveAttribute('aria-valuenow', '64');
  const moves = await card(panel, 1).evaluate(async node => {
    let moves = 0;
    // The past of a young server grows by a column now and then: that is a change.
    const isCurve = ({ target }: MutationRecord) =>
      target instanceof SVGElement;
    const observer = new MutationObserver(records => {
      moves += records.filter(record => !isCurve(record)).length;
    });
    const everything = { childList: true, characterData: true, subtree: true };
    observer.observe(node, { ...everything, attributes: true });
    await new Promise(resolve => setTimeout(resolve, 4000));
    return moves;
  });
  expect(moves).toBe(0);
});

test('nobody is asked while the panel is hidden', async ({ page }) => {
  const [asked, told]: [string[], string[]] = [[], []];
  page.on('websocket', socket => {
    if (socket.url().includes('jupyter-dist/stream')) {
      socket.on('framesent', ({ payload }) => asked.push(`${payload}`));
      socket.on('framereceived', ({ payload }) => {
        // The time is told to every page, and so are pools.
        if (
          !/^(time|pools?|pool_removed)$/.test(JSON.parse(`${payload}`).type)
        ) {
          told.push(`${payload}`);
        }
      });
    }
  });
  await page.reload();
  const panel = new Panel(page);
  await panel.open();
  const samples = () => told.filter(text => text.includes('"sample"')).length;
  await expect.poll(samples).toBeGreaterThan(1);
  // Ends of jobs are told of, whatever is in sight; they cost nothing while there are none.
  await expect
    .poll(() => asked.at(-1))
    .toBe('{"watch":["agents","gpus","jobs"]}');

  await page.getByRole('tab', { name: /^File Browser/ }).click();
  await expect.poll(() => asked.at(-1)).toBe('{"watch":["jobs"]}');
  let before = 0;
  // What was on its way may still come.
  await expect(async () => {
    before = told.length;
    await page.waitForTimeout(2500);
    expect(told.length).toBe(before);
  }).toPass();

  await panel.open();
  await expect.poll(() => told.length).toBeGreaterThan(before);
  await expect
    .poll(() => asked.at(-1))
    .toBe('{"watch":["agents","gpus","jobs"]}');
});

test('ranks on GPUs: their load, their memory, and whose they are', async ({
  panel,
  notebooks
}) => {
  await notebooks.open('gpus.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2 -g 0,1',
    `%%distributed
import os
while not os.path.exists("go"):
    torch.rand(200, 200) @ torch.rand(200, 200)`
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await expect(panel.tile(1)).toContainText('GPU 1');
  await expect(panel.tile(1)).toContainText(/\d+ [MG]iB/);
  await expect(card(panel, 0)).toContainText('rank 0');
  await expect(card(panel, 1)).toContainText('rank 1');
  await expect(panel.root).toContainText('8 · 3 in use');
  await expect(
    panel.gpus.getByRole('meter', { name: 'Memory of GPU 0' })
  ).toHaveAttribute('aria-valuetext', /of 80 GiB · rank 0: /);

  await test.step('a cell makes them busy', async () => {
    await notebooks.run(1);
    // The pretended load is the ranks' share of the processors, which others use too.
    for (const gpu of [0, 1]) {
      await expect
        .poll(() => percent(utilization(panel, gpu)))
        .toBeGreaterThan(5);
    }
    await notebooks.write('go', '');
    await expect.poll(() => percent(utilization(panel, 0))).toBeLessThan(5);
  });

  await test.step('what runs there, with the keyboard', async () => {
    const [pid] = await panel.pids();
    const details = card(panel, 0).getByRole('button', {
      name: 'Details of GPU 0'
    });
    await details.focus();
    await details.press('Enter');
    const processes = panel.gpus.getByRole('list', {
      name: 'Processes on GPU 0'
    });
    await expect(processes).toContainText('rank 0');
    await expect(processes).toContainText(`pid ${pid}`);
    await expect(card(panel, 0)).toContainText(/PCIe: sent \/ received\d+ MB/);
    await panel.expectRight();
    await details.press('Enter');
    await expect(processes).toBeHidden();
  });

  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  await expect(card(panel, 0)).toContainText('not leased');
});
