/*
 * What matters is in sight, in a panel of the least width and in a wider one. `make screenshots` draws each.
 */
import { expectAccessibleInBothThemes } from './accessibility';
import { PretendedPool } from './pretendedPool';
import type { ISaid } from './pretendedPool';
import { expectInSight, onEach, scrollBy, scrollers, SIGHT } from './sight';
import { cancelJobs, expect, Panel, test } from './support';

test.use(SIGHT);

test('what is wrong, and whom others wait for, is in sight', async ({
  page,
  notebooks
}) => {
  const pretended = await PretendedPool.follow(page);
  await page.goto();
  const panel = new Panel(page);
  await panel.open();
  await notebooks.open('many.ipynb', ['']);
  const kernel = await notebooks.kernel('many.ipynb');
  const option = (name: RegExp) => panel.pool.getByRole('option', { name });
  const check = async () => {
    await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    await page.theme.setLightTheme();
  };

  const idle = { cell: 6 };
  await onEach(
    panel,
    'idle',
    async () => {
      pretended.say(kernel, [idle, idle, idle, idle]);
      await expectInSight(panel, panel.state('Running'));
      await expectInSight(panel, panel.tile(3));
      const bars = await panel.tiles
        .locator('.jp-dist-Meter')
        .evaluateAll(bars =>
          bars.map(bar => {
            const tile = bar.closest('li')!.getBoundingClientRect();
            return Math.round(bar.getBoundingClientRect().y - tile.y);
          })
        );
      expect(new Set(bars).size).toBe(1);
    },
    false
  );

  const dead: ISaid = {
    state: 'dead',
    exit: 'killed by signal 9 (SIGKILL)',
    stderr: Array.from({ length: 30 }, (_, line) => `step ${line}`)
  };
  await onEach(panel, 'dead', async () => {
    pretended.say(kernel, [idle, idle, idle, dead]);
    const parts = [
      panel.state('1 rank dead'),
      panel.pool.getByText(/^Rank 3 died\./),
      panel.button('Restart rank 3')
    ];
    for (const part of parts) {
      await expectInSight(panel, part);
    }
    // Above the tiles, and also where the section goes on.
    const [button, tile] = await Promise.all([
      parts[2].boundingBox(),
      panel.tile(0).boundingBox()
    ]);
    expect(button!.y + button!.height).toBeLessThanOrEqual(tile!.y);
    await scrollBy(panel, 150);
    for (const part of parts) {
      await expectInSight(panel, part);
    }
    expect((await scrollers(panel)).length).toBeLessThanOrEqual(1);
    await scrollBy(panel, -150);
  });
  await check();

  const waiting: ISaid = {
    state: 'busy',
    cell: 7,
    waits: ['all_reduce', 3, 120]
  };
  const hang = Array.from({ length: 16 }, (_, rank) =>
    rank === 5 ? idle : waiting
  );
  await onEach(panel, 'hang', async () => {
    pretended.say(kernel, hang);
    await expectInSight(
      panel,
      panel.pool.getByText('Rank 5 never joined all_reduce #412.')
    );
    await expectInSight(
      panel,
      panel.pool.getByRole('status').getByRole('button', { name: 'Interrupt' })
    );
    const missing = option(/^Rank 5 · did not join all_reduce #412/);
    await expectInSight(panel, missing);
    await expect(missing).toHaveClass(/jp-mod-missing/);
    await expect(
      panel.pool.getByText('15 wait', { exact: true })
    ).toBeVisible();
  });
  await check();

  await test.step('the keyboard opens one', async () => {
    await option(/^Rank 0 ·/).focus();
    await page.keyboard.press('End');
    await expect(option(/^Rank 15 ·/)).toBeFocused();
    await page.keyboard.press('Home');
    for (let rank = 0; rank < 5; rank += 1) {
      await page.keyboard.press('ArrowRight');
    }
    await page.keyboard.press('Enter');
    await expect(option(/^Rank 5 ·/)).toHaveAttribute('aria-selected', 'true');
    await expect(option(/^Rank 5 ·/)).toBeFocused();
    await expect(panel.tile(5)).toContainText('did not join all_reduce #412');
    await expectInSight(panel, panel.tile(5));
    await page.keyboard.press('Tab');
    await expect(panel.button('Menu of rank 5')).toBeFocused();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Escape');
    await expect(panel.tile(5)).toBeHidden();
    await option(/^Rank 9 ·/).click();
    await expect(panel.tile(9)).toContainText('waits in all_reduce');
    await check();
    await option(/^Rank 9 ·/).click();
    await expect(panel.tile(9)).toBeHidden();
  });

  await onEach(panel, 'many', async width => {
    const grid = panel.pool.getByRole('listbox', { name: 'Ranks' });
    for (const others of [waiting, { state: 'busy', cell: 7 } as const]) {
      pretended.say(
        kernel,
        Array.from({ length: 128 }, (_, rank) =>
          rank === 77 ? dead : rank === 100 ? idle : others
        )
      );
      await expect(panel.tiles).toHaveCount(128);
      await expect(panel.pool.getByText('never joined')).toHaveCount(
        others === waiting ? 1 : 0
      );
      const box = await grid.boundingBox();
      expect(box!.width).toBeLessThanOrEqual(width);
      expect(box!.height).toBeLessThanOrEqual(300);
      // Their numbers and shapes, too.
      const spilt = await panel.tiles.evaluateAll(cells =>
        cells
          .filter(cell => cell.scrollHeight > cell.clientHeight)
          .map(({ textContent }) => textContent)
      );
      expect(spilt).toEqual([]);
    }
    // Without a hang, all of them and the dead one's button are in sight.
    await expectInSight(panel, panel.button('Restart rank 77'));
    await expectInSight(panel, grid);
  });
  await check();

  await test.step('a theme of high contrast keeps the shapes and edges', async () => {
    await page.emulateMedia({ forcedColors: 'active' });
    const edge = (name: RegExp) =>
      option(name).evaluate(cell => getComputedStyle(cell).outlineStyle);
    expect(await edge(/^Rank 77 ·/)).toBe('solid');
    expect(await edge(/^Rank 1 ·/)).toBe('none');
    await expect(option(/^Rank 77 ·/).locator('svg')).toBeVisible();
    await page.emulateMedia({ forcedColors: null });
  });
});

test('eight GPUs and a queue have one scroll bar', async ({
  page,
  notebooks
}) => {
  const pretended = await PretendedPool.follow(page);
  await page.goto();
  const panel = new Panel(page);
  await panel.open();
  for (const gpus of [8, 4, 2]) {
    const answer = await page.request.post('jupyter-dist/jobs', {
      data: {
        command: ['sleep', '600'],
        gpus,
        hold: gpus === 8,
        name: `train-${gpus}`,
        chdir: '/tmp',
        output: '/dev/null'
      }
    });
    expect(answer.status()).toBe(201);
  }
  await notebooks.open('queue.ipynb', ['']);
  const kernel = await notebooks.kernel('queue.ipynb');
  await panel.root.getByRole('heading', { name: 'Queue Section' }).click();
  const content = panel.root.locator('.lm-AccordionPanel');
  await onEach(panel, 'queue', async () => {
    pretended.say(kernel, [{ cell: 6 }, { cell: 6 }], {
      notices: ['One notice.', 'Another one.']
    });
    await expect(panel.pool.getByText('2 notices')).toBeVisible();
    await expect.poll(() => scrollers(panel)).toHaveLength(1);
    // No section is cut off: each is as high as what is in it.
    const cut = await panel.root
      .locator('.jp-dist-Section:visible')
      .evaluateAll(sections =>
        sections.filter(
          ({ scrollHeight, clientHeight }) => scrollHeight > clientHeight
        )
      );
    expect(cut).toEqual([]);
    await content.evaluate(node => (node.scrollTop = node.scrollHeight));
    await expectInSight(panel, panel.root.getByText('Submit a job…'));
    await expectInSight(
      panel,
      panel.root.getByRole('heading', { name: 'Queue Section' })
    );
  });
  await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
  await cancelJobs(page);
});
