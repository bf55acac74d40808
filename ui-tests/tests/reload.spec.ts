import { expectAccessible } from './accessibility';
import { expect, test } from './support';

const WAIT = `%%distributed
import os, time
print('first')
while not os.path.exists('on'):
    time.sleep(0.05)
print('goes on')
while not os.path.exists('go'):
    time.sleep(0.05)
for i in range(1000):
    print('line', i)
print('last')`;

test('a cell that runs while the page is loaded again goes on showing what it does', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('one.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    WAIT
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(notebooks.output(1)).toContainText('first');

  await page.theme.setDarkTheme();
  await page.reload();
  await notebooks.turnTo('one.ipynb');
  await expect(panel.tile(1)).toContainText('busy');
  await expect(notebooks.output(1)).toContainText('first');
  await expect(notebooks.output(1)).not.toContainText('last');
  await expect(page.locator('body')).toHaveAttribute(
    'data-jp-theme-light',
    'false'
  );
  await expectAccessible(page, [
    '#jupyter-dist-panel',
    '.jp-dist-OutputTabs',
    '.jp-dist-TextBlock'
  ]);
  await notebooks.write('on', '');
  await expect(notebooks.output(1)).toContainText('goes on');
  await notebooks.write('go', '');
  await expect(notebooks.output(1)).toContainText('line 0');
  await expect(async () => {
    await notebooks
      .output(1)
      .getByRole('button', { name: 'Copy all of this tab' })
      .click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const bare = copied.split('\n').map(line => line.replace(/^\[0-1\] */, ''));
    expect(bare.filter(line => line)).toEqual([
      'first',
      'goes on',
      ...[...Array(1000).keys()].map(i => `line ${i}`),
      'last'
    ]);
  }).toPass({ timeout: 45_000 });
});

const SILENT = `%%distributed
import os, time
while not os.path.exists('speak'):
    time.sleep(0.05)
print('at last')`;

test('a cell that has shown nothing yet shows what comes after the page was loaded again', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('silent.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    SILENT
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(panel.tile(1)).toContainText('busy');

  // The page asks once; what comes after the answer was lost where that had no such cell.
  const answered = new Promise<void>(resolve =>
    page.on('websocket', socket => {
      let hasAsked = false;
      socket.on('framesent', ({ payload }) => {
        hasAsked ||= payload.includes('jupyter_dist.replay');
      });
      socket.on('framereceived', ({ payload }) => {
        if (hasAsked && payload.includes('comm_msg')) {
          resolve();
        }
      });
    })
  );
  await page.reload();
  await notebooks.turnTo('silent.ipynb');
  await answered;
  await notebooks.write('speak', '');
  await expect(notebooks.output(1)).toContainText('at last');
});
