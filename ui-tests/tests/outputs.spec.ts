import { galata } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator, Page } from '@playwright/test';

import { expectAccessible } from './accessibility';
import { expect, test } from './support';

const OURS = ['.jp-dist-OutputTabs', '.jp-dist-TextBlock'];

const INIT = '%load_ext jupyter_dist_server\n%dist_init -n 3';
const MIXED = `%%distributed
import os, time
from IPython.display import HTML
print('loaded')
print('mine', rank)
while not os.path.exists('go'):
    time.sleep(0.05)
print('odd' if rank == 1 else 'even')
display(HTML(f'<b>table {rank}</b>'))
if rank == 2:
    raise ValueError('too warm')`;
const FIGURES = `%%distributed
import time
from IPython.display import SVG
circle = f'<circle cx="150" cy="60" r="{20 + 10 * rank}"/>'
print('drawn')
time.sleep(0.5 * (2 - rank))
display(SVG(f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="120">{circle}</svg>'))`;
const LONG = `%%distributed
for i in range(1500):
    print('line', i, 'of', rank)
print('done', rank)`;

function tab(output: Locator, name: string | RegExp): Locator {
  return output.getByRole('tab', { name, exact: true });
}

/** What the tab shows, as text; without the ranks at the left. */
async function shown(output: Locator): Promise<string[]> {
  const texts = await output
    .locator('.jp-dist-Row-text:visible')
    .allInnerTexts();
  return texts.flatMap(text => text.split('\n'));
}

async function copied(page: Page, output: Locator): Promise<string> {
  await output.getByRole('button', { name: 'Copy all of this tab' }).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

test('what ranks put out is merged, or shown for one rank', async ({
  page,
  notebooks
}) => {
  await notebooks.open('tabs.ipynb', [INIT, MIXED]);
  await notebooks.run(0);
  await expect(notebooks.output(0)).toContainText('3 ranks ready');
  await expect(notebooks.output(0).getByRole('tablist')).toHaveCount(0);
  await notebooks.run(1);
  const output = notebooks.output(1);

  await test.step('while the cell runs', async () => {
    await expect(output).toContainText('mine 2');
    await expect(tab(output, 'Merged')).toHaveAttribute(
      'aria-selected',
      'true'
    );
    // What ranks say at one time may come in any order.
    const gutters = output.locator('.jp-dist-Gutter');
    await expect(gutters.first()).toHaveText('0–2');
    await expect
      .poll(async () => (await gutters.allInnerTexts()).sort())
      .toEqual(['0', '0–2', '1', '2']);
    await tab(output, 'Rank 1').click();
    expect(await shown(output)).toEqual(['loaded', 'mine 1']);
    await notebooks.write('go', '');
    await expect(output).toContainText('odd');
    await expect(output.getByText('table 1')).toBeVisible();
    await expect(output.getByText('table 0')).toBeHidden();
    expect(await shown(output)).toEqual(['loaded', 'mine 1', 'odd']);
  });

  const error = output.getByText('Traceback (most recent call last)');
  await test.step('a rank that failed is marked', async () => {
    const failed = tab(output, 'Rank 2, failed: ValueError: too warm');
    await expect(failed).toHaveText('2●');
    await expect(error).toBeHidden();
    await failed.click();
    await expect(error).toBeVisible();
    expect(await shown(output)).toEqual(['loaded', 'mine 2', 'even']);
  });

  await test.step('all of it by keyboard', async () => {
    await page.keyboard.press('ArrowLeft');
    await expect(tab(output, 'Rank 1')).toBeFocused();
    await expect(output.getByText('table 1')).toBeVisible();
    await page.keyboard.press('Home');
    await expect(tab(output, 'Merged')).toBeFocused();
    await expect(output.getByText('table 0')).toBeVisible();
    await expect(error).toBeVisible();
    await page.keyboard.press('ArrowLeft');
    await expect(tab(output, /^Rank 2/)).toBeFocused();
    await page.keyboard.press('ArrowRight');
    await expect(tab(output, 'Merged')).toBeFocused();
    await expect(tab(output, /^Rank 2/)).toHaveAttribute('tabindex', '-1');
  });

  await test.step('what a tab shows is its panel', async () => {
    await expect(output).toMatchAriaSnapshot(`
      - tabpanel "Merged": /loaded .* table 0/
    `);
    await tab(output, 'Rank 1').click();
    await expect(output).toMatchAriaSnapshot(`
      - tabpanel "Rank 1": loaded mine 1 odd table 1
    `);
    await tab(output, 'Merged').click();
  });

  await test.step('nothing in it is a barrier, in either theme', async () => {
    await page.theme.setLightTheme();
    await expectAccessible(page, OURS);
    await page.theme.setDarkTheme();
    await expectAccessible(page, OURS);
  });

  await test.step('all of a tab can be copied', async () => {
    const merged = await copied(page, output);
    expect(merged).toMatch(/^\[0-2\] loaded\n/);
    expect(merged).toContain('\n[0]   mine 0\n');
    await tab(output, 'Rank 0').click();
    expect(await copied(page, output)).toBe('loaded\nmine 0\neven');
  });

  await test.step('another view has tabs of its own', async () => {
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('notebook:create-output-view')
    );
    const view = page.locator('.jp-LinkedOutputView');
    await tab(view, 'Rank 1').click();
    expect(await shown(view)).toEqual(['loaded', 'mine 1', 'odd']);
    await expect(tab(output, 'Rank 0')).toHaveAttribute(
      'aria-selected',
      'true'
    );
  });
});

test('figures of ranks stand side by side, by rank', async ({
  page,
  notebooks
}) => {
  await notebooks.open('figures.ipynb', [INIT, FIGURES]);
  await notebooks.run(0);
  await expect(notebooks.output(0)).toContainText('3 ranks ready');
  await notebooks.run(1);
  const output = notebooks.output(1);
  const figures = output.locator('.jp-dist-mod-figure');
  await expect(figures).toHaveCount(3);
  // Figures move until all of them are loaded.
  await expect(async () => {
    const places = await figures.evaluateAll(nodes =>
      nodes.map(node => {
        const { x, y, width } = node.getBoundingClientRect();
        return { rank: node.getAttribute('data-ranks'), x, y, width };
      })
    );
    const [first, second, third] = places.sort((a, b) => a.x - b.x);
    expect(places.map(({ rank }) => rank)).toEqual(['0', '1', '2']);
    expect(second.x).toBeGreaterThan(first.x + first.width / 2);
    expect(third.x).toBeGreaterThan(second.x + second.width / 2);
    expect([second.y, third.y]).toEqual([first.y, first.y]);
  }).toPass({ timeout: 45_000 });
  await page.theme.setDarkTheme();
  await expectAccessible(page, OURS);
  await page.theme.setLightTheme();
  await tab(output, 'Rank 1').click();
  await expect(output.locator('img:visible, svg:visible')).not.toHaveCount(0);
  await expect(figures).toHaveCount(0);
});

test('the marked among many ranks are at hand', async ({ page, tmpPath }) => {
  const { makeCell, makeNotebook } = galata.Notebook;
  const mark = {
    output_type: 'display_data',
    metadata: {},
    data: {
      'application/vnd.jupyter-dist.ranks+json': {
        ranks: '0-63',
        world_size: 64,
        failed: { 61: 'ValueError: too warm' }
      },
      'text/html': ''
    }
  };
  const text = '[0-63] loaded\n[37]   odd\n[51]   odd\n';
  const outputs = [mark, { output_type: 'stream', name: 'stdout', text }];
  const path = `${tmpPath}/many.ipynb`;
  const notebook = makeNotebook([makeCell({ outputs: outputs as never })]);
  await page.contents.uploadContent(JSON.stringify(notebook), 'text', path);
  await page.evaluate(async path => {
    await window.jupyterapp.commands.execute('docmanager:open', {
      path,
      kernel: { name: null, shouldStart: false }
    });
  }, path);
  const next = page.getByRole('button', { name: '1 failed 2 differ' });
  await next.focus();
  for (const name of [
    'Rank 37, differs from most ranks',
    'Rank 51, differs from most ranks',
    'Rank 61, failed: ValueError: too warm',
    'Rank 37, differs from most ranks'
  ]) {
    const goal = page.getByRole('tab', { name, exact: true });
    await expect(goal).not.toBeInViewport({ ratio: 0.9 });
    await page.keyboard.press('Enter');
    await expect(goal).toBeInViewport({ ratio: 0.9 });
    await expect(goal).toBeFocused();
    await expect(goal).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('Tab');
    await expect(next).toBeFocused();
  }
  await page.theme.setDarkTheme();
  await expectAccessible(page, OURS);
  await page.theme.setLightTheme();
  await expectAccessible(page, OURS);
});

test('much output is a box that scrolls, and stays in the file as text', async ({
  page,
  notebooks
}) => {
  await notebooks.open('much.ipynb', [INIT, LONG]);
  await notebooks.run(0);
  await expect(notebooks.output(0)).toContainText('3 ranks ready');
  await notebooks.run(1);
  const output = notebooks.output(1);
  const box = output.getByRole('group', { name: 'Output, 4503 lines' });
  const rows = box.locator('.jp-dist-Row');

  await test.step('it follows its end, and draws what can be seen', async () => {
    await expect(box).toBeVisible();
    await expect(rows.last()).toContainText('done');
    expect(await rows.count()).toBeLessThan(150);
    await box.focus();
    await page.keyboard.press('Home');
    await expect(rows.first()).toContainText(/line 0 of \d/);
  });

  await test.step('it is where it was when it comes into the page again', async () => {
    const scrolled = () => box.evaluate(node => node.scrollTop);
    await box.evaluate(node => (node.scrollTop = 20_000));
    await expect(rows.first()).not.toContainText(/line 0 of \d/);
    await box.evaluate(async node => {
      const place = node.parentElement;
      node.remove();
      for (let frames = 0; frames < 3; frames++) {
        await new Promise(requestAnimationFrame);
      }
      place?.append(node);
    });
    await expect.poll(scrolled).toBe(20_000);
  });

  await test.step('a filter finds lines that are not in sight', async () => {
    const filter = output.getByRole('searchbox', { name: 'Filter lines' });
    await filter.fill('LINE 77');
    await expect(output).toContainText('33 of 4503 lines');
    const found = output.locator('.jp-dist-LongText .jp-dist-Row').first();
    await expect(found).toContainText('line 77 of');
    await page.theme.setDarkTheme();
    await expectAccessible(page, OURS);
    await page.theme.setLightTheme();
    await expectAccessible(page, OURS);
    await filter.press('Escape');
    await expect(output).toContainText('4503 lines');
    await expect(box).toBeVisible();
  });

  const expectRank = async () => {
    await tab(output, 'Rank 1').click();
    expect((await copied(page, output)).split('\n')).toEqual([
      ...[...Array(1500).keys()].map(i => `line ${i} of 1`),
      'done 1'
    ]);
  };
  await test.step('a rank has shown what it has printed, in order', expectRank);

  await test.step('the same from the file, without a kernel', async () => {
    await page.evaluate(async () => {
      const { commands, shell } = window.jupyterapp;
      const panel = shell.currentWidget as NotebookPanel;
      await panel.context.save();
      await panel.sessionContext.shutdown();
      const { path } = panel.context;
      panel.dispose();
      await commands.execute('docmanager:open', {
        path,
        kernel: { name: null, shouldStart: false }
      });
    });
    await expect(box).toBeVisible();
    await expect(rows.first()).toContainText(/line 0 of \d/);
    await expectRank();
  });

  await test.step('cleared outputs leave no tabs', async () => {
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')
    );
    await expect(output.getByRole('tablist')).toHaveCount(0);
    await expect(output).toHaveText('');
  });
});
