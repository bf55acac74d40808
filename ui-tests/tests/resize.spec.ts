import { FAKE_GPUS_URL } from '../playwright.config';
import { expect, test } from './support';

// Eight pretend GPUs; another process is on GPU 6.
test.use({ baseURL: FAKE_GPUS_URL });

test('a pool with ranks on the CPU waits for more GPUs, gives up, and grows', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('one.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 4 --cpu-ranks 2'
  ]);
  const execute = (command: string) =>
    page.evaluate(id => {
      void window.jupyterapp.commands.execute(id);
    }, command);
  await execute('notebook:run-all-cells');
  await panel.expectRunning(4);
  await expect(panel.tile(1)).toContainText('GPU 1');
  await expect(panel.tile(2)).toContainText('CPU');

  const dialog = page.getByRole('dialog');
  const resize = async (ranks: number, wait: boolean) => {
    await execute('jupyter-dist:resize-pool');
    await dialog.getByRole('spinbutton').fill(`${ranks}`);
    await dialog.getByRole('checkbox').setChecked(wait);
    await dialog.getByRole('button', { name: 'Resize' }).click();
  };
  await resize(10, true);
  const note = panel.pool.getByText(/^Resizing to 10 ranks\. .*GPU 6/);
  await expect(note).toContainText('#1 in line');
  await panel.pool.getByRole('button', { name: 'Cancel' }).click();
  await expect(note).toBeHidden();
  await panel.expectRunning(4);

  await resize(6, false);
  await panel.expectRunning(6);
  await expect(panel.tile(5)).toContainText('GPU 3');
  await panel.expectRight();
});
