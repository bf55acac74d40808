import { expect, test } from './support';

const INIT = '%load_ext jupyter_dist_server\n%dist_init -n 2';
const FAILS = '# why\n\n%%distributed\n\nx = 1\n1 / 0';

test('errors name the lines that the editor shows, and Tab completes the options of magics', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('lines.ipynb', [INIT, FAILS, '%dist_init --backe']);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('notebook:toggle-all-cell-line-numbers')
  );
  const editor = (index: number) =>
    page.locator('.jp-NotebookPanel:visible .jp-Cell .cm-editor').nth(index);

  await test.step('line numbers', async () => {
    await notebooks.run(1);
    const line = editor(1).locator('.cm-line').filter({ hasText: '1 / 0' });
    const numbers = editor(1).locator('.cm-lineNumbers .cm-gutterElement');
    // Cells move, and numbers are drawn, a little later.
    await expect(async () => {
      const { y } = (await line.boundingBox())!;
      // The first one is hidden: it has the width of the longest.
      const found = await numbers.evaluateAll(
        (all, y) =>
          all
            .filter(node => Math.abs(node.getBoundingClientRect().y - y) < 4)
            .filter(node => getComputedStyle(node).visibility !== 'hidden')
            .map(node => node.textContent),
        y
      );
      expect(found).toEqual(['6']);
    }).toPass({ timeout: 45_000 });
    await expect(notebooks.output(1)).toContainText(/In ?\[\d+\], line 6/);
    await expect(notebooks.output(1)).toContainText('----> 6 1 / 0');
  });

  await test.step('options', async () => {
    await editor(2).locator('.cm-content').click();
    await page.keyboard.press('End');
    // JupyterLab waits a second for the answer, which may take longer on a busy machine.
    await expect(async () => {
      await page.keyboard.press('Tab');
      await expect(editor(2).locator('.cm-content')).toHaveText(
        /^%dist_init --backend\s*$/,
        { timeout: 5000 }
      );
    }).toPass({ timeout: 45_000 });
  });
});
