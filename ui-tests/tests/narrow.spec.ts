import { galata } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { cutIn, WHOLE, WIDTHS } from './narrow';
import { draw, show } from './pictures';
import { PretendedPool } from './pretendedPool';
import type { ISaid } from './pretendedPool';
import { expect, Panel, test } from './support';

test.use({
  baseURL: FAKE_GPUS_URL,
  // The stream is to be caught before the page asks for it.
  autoGoto: false,
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
});

/** How many of the elements stand beside the first. */
async function columnsOf(elements: Locator): Promise<number> {
  const boxes = await Promise.all(
    (await elements.all()).map(element => element.boundingBox())
  );
  return boxes.filter(box => box!.y === boxes[0]!.y).length;
}

test('the panel is right at its least width', async ({ page, notebooks }) => {
  const pretended = await PretendedPool.follow(page);
  await page.goto();
  const panel = new Panel(page);
  await panel.open();
  await notebooks.open('narrow.ipynb', ['']);
  const kernel = await notebooks.kernel('narrow.ipynb');
  const chips = panel.form.locator('.jp-dist-Chip');

  const check = (state: string, parts: () => Promise<void>) =>
    test.step(state, async () => {
      for (const width of WIDTHS) {
        await page.sidebar.setWidth(width, 'left');
        await parts();
        await expect.poll(() => cutIn(panel.root, WHOLE)).toEqual([]);
        await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
      }
      const name = `narrow-${state}`;
      await (state === 'start'
        ? draw(page, name, panel.root)
        : show(panel.root, name));
    });

  await check('start', async () => {
    await expect.poll(() => columnsOf(chips)).toBe(2);
    await expect(panel.form.locator('.jp-dist-Field')).toHaveCount(2);
    await expect(panel.button('Start')).toBeInViewport();
  });

  await test.step('a refusal is in sight, and readable in full', async () => {
    const who =
      'GPUs 0, 1 are leased by root (pool p-3f309ee5 of work.ipynb, since 22:32, idle since 22:33); GPU 6 is used by python, pid 29716, user root, 31 GiB; GPU 7 is leased by root (pool p-9e7a4ec7 of a_rather_long_notebook_name_for_training_llama_v2_final.ipynb, since 22:34)';
    const line = { place: 12, expected: 4e9, certain: false };
    await page.route(/jupyter-dist\/pools(\?|$)/, route =>
      route.fulfill({
        status: 409,
        json: {
          code: 'gpus_taken',
          message: `No GPU is free: ${who}.`,
          hint: 'Wait, or share.',
          offers: [
            { kind: 'wait', line },
            { kind: 'free', gpu_ids: ['0:1', '1:1', '2:1', '3:1'] },
            { kind: 'share' },
            { kind: 'job', gpus: 4 }
          ]
        }
      })
    );
    await page.setViewportSize({ width: 1280, height: 480 });
    await panel.button('Start').click();
    await expect(panel.pool.getByText('No GPU is free.')).toBeInViewport();
    await page.setViewportSize({ width: 1280, height: 800 });
    for (const width of WIDTHS) {
      await page.sidebar.setWidth(width, 'left');
      await expect(panel.pool.getByText(/^Wait \(#12/)).toBeInViewport();
      const spilt = await panel.pool
        .locator('.jp-dist-Offers > *')
        .evaluateAll(buttons =>
          buttons
            .filter(
              ({ scrollHeight, clientHeight }) => scrollHeight > clientHeight
            )
            .map(({ textContent }) => textContent)
        );
      expect(spilt).toEqual([]);
      await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    }
    await show(panel.root, 'narrow-refusal');
    await panel.button('Dismiss').click();
    await page.unroute(/jupyter-dist\/pools(\?|$)/);
  });

  const busy: ISaid = { state: 'busy', cell: 17 };
  await check('busy', async () => {
    // Again at each width: the page may have connected anew, and then knows the server's pools only.
    pretended.say(
      kernel,
      [busy, busy, { ...busy, waits: ['all_reduce', 3, 120] }, { cell: 6 }],
      { notices: ['One notice.', 'Another one.'] }
    );
    await expect.poll(() => columnsOf(panel.tiles)).toBe(2);
    const actions = panel.pool.locator('.jp-dist-Actions > *');
    await expect.poll(() => columnsOf(actions)).toBe(3);
    for (const rank of [0, 1, 2, 3]) {
      await expect(panel.tile(rank)).toContainText(/GPU \d/);
    }
    await expect(panel.tile(0)).toContainText('31.2 GiB');
    await expect(panel.button('Interrupt').first()).toBeEnabled();
  });

  await test.step('notices fold, and can be dismissed', async () => {
    pretended.say(kernel, [{}, {}, {}, {}], {
      notices: ['One notice.', 'Another one.']
    });
    // A triangle is part of its name.
    const fold = panel.pool.getByRole('button', { name: /^2 notices/ });
    await expect(panel.pool.getByText('Another one.')).toBeHidden();
    await fold.click();
    await expect(panel.pool.getByText('Another one.')).toBeVisible();
    expect(await cutIn(panel.root, WHOLE)).toEqual([]);
    await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    await panel.button('Dismiss this notice').first().click();
    await expect(fold).toBeHidden();
    await expect(panel.pool.getByText('One notice.')).toBeHidden();
    await expect(panel.button('Dismiss this notice')).toBeFocused();
  });

  await check('dead', async () => {
    pretended.say(kernel, [{}, {}, {}, { state: 'dead', exit: 'exited' }]);
    await expect(panel.state('1 rank dead')).toBeVisible();
    await expect(panel.state('Running')).toBeHidden();
    await expect(panel.button('Interrupt')).toBeDisabled();
  });
});
