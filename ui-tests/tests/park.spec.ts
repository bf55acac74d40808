import { FAKE_GPUS_URL } from '../playwright.config';
import { show } from './pictures';
import { expect, test } from './support';

// Eight pretend GPUs, with a driver that is pretended, too.
test.use({ baseURL: FAKE_GPUS_URL });

test('a pool is parked, its GPUs go to another one, and it comes back', async ({
  page,
  panel,
  notebooks
}) => {
  await page.sidebar.setWidth(250, 'left');
  await notebooks.open('one.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2 -g 0,1 --park-after 1:00:00',
    '%%distributed\nkept = rank + 10'
  ]);
  const execute = (command: string) =>
    page.evaluate(id => {
      void window.jupyterapp.commands.execute(id);
    }, command);
  const goTo = (name: string) =>
    page.getByRole('main').getByRole('tab', { name }).click();
  await execute('notebook:run-all-cells');
  await panel.expectRunning(2);
  const dialog = page.getByRole('dialog');
  await execute('jupyter-dist:park-pool');
  await expect(dialog).toContainText('never on a GPU');
  await show(dialog, 'park-dialog');
  await dialog.getByRole('button', { name: 'Park' }).click();
  const note = panel.pool.getByText(/^Parked for .*others can use GPUs 0, 1\./);
  await expect(note).toBeVisible();
  await expect(panel.tile(1)).toContainText('parked');
  await panel.expectRight();
  await show(panel.pool, 'parked-dark');
  await page.theme.setLightTheme();
  await show(panel.pool, 'parked-light');

  // Another pool takes one of the GPUs.
  await notebooks.open('two.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 1 -g 1'
  ]);
  await execute('notebook:run-all-cells');
  await panel.expectRunning(1);
  await goTo('one.ipynb');
  await panel.pool.getByRole('button', { name: 'Resume' }).click();
  const waits = panel.pool.getByText(/^GPU 1 is leased/);
  await expect(waits).toBeVisible();
  await expect(panel.pool.getByText(/^#1 in line/)).toBeVisible();
  await expect(panel.state('Waiting for GPUs')).toBeVisible();
  await show(panel.pool, 'park-waits-light');
  await panel.pool.getByRole('button', { name: 'Stay Parked' }).click();
  await expect(note).toBeVisible();
  await panel.pool.getByRole('button', { name: 'Resume' }).click();
  await expect(waits).toBeVisible();

  await goTo('two.ipynb');
  await panel.pool.getByRole('button', { name: 'Stop' }).click();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await goTo('one.ipynb');
  await panel.expectRunning(2);
  await panel.expectRight();
});
