import { expect, test } from './support';

test('the panel is there before any notebook', async ({ page, panel }) => {
  await expect(
    panel.pool.getByText('Open a notebook to start ranks for it.')
  ).toBeVisible();

  const answer = await page.request.get('jupyter-dist/gpus');
  const { gpus, reason } = await answer.json();
  if (gpus.length) {
    const list = panel.gpus.getByRole('list', { name: 'GPUs' });
    await expect(list.getByRole('listitem')).toHaveCount(gpus.length);
  } else {
    expect(reason).toBe('No NVIDIA GPU found: ranks run on the CPU.');
    // The tiles of the ranks show what there is to show.
    await expect(panel.gpus).toBeHidden();
    const title = panel.root.getByRole('heading', { name: 'GPUs Section' });
    await expect(title).toContainText('none');
    await title.click();
    await expect(panel.gpus.getByText(reason)).toBeVisible();
  }
  await panel.expectCommands(['Show Ranks & GPUs']);
});

test('the life of a pool, from the panel', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('life.ipynb', [
    `%%distributed
import os, time
print("ready")
print("rank", rank)
while not os.path.exists("go"):
    time.sleep(0.05)`,
    '%%distributed\nanswer = 42\nfor _ in range(600):\n    time.sleep(0.1)',
    '%%distributed\nprint("kept", answer)'
  ]);
  const idle = panel.tiles.filter({ hasText: 'idle' });
  const busy = panel.tiles.filter({ hasText: 'busy' });

  await test.step('choose the number of ranks', async () => {
    await expect(panel.state('No ranks run for this notebook.')).toBeVisible();
    await panel.stepper.fill('1');
    await expect(panel.button('One rank fewer')).toBeDisabled();
    await panel.button('One rank more').click();
    await expect(panel.stepper).toHaveValue('2');
    await panel.stepper.press('ArrowUp');
    await expect(panel.stepper).toHaveValue('3');
    await panel.button('One rank fewer').click();
    await expect(panel.stepper).toHaveValue('2');
    await panel.stepper.fill('');
    await expect(panel.button('Start')).toBeDisabled();
    await panel.stepper.fill('2');
    await panel.expectCommands(['Show Ranks & GPUs', 'Start Ranks']);
  });

  await test.step('cancel a start', async () => {
    const env = await notebooks.environmentWithTorch(
      'import time\ntime.sleep(600)'
    );
    // The panel's own request, with an environment in which the start takes for ever.
    await page.route(/jupyter-dist\/pools/, (route, request) =>
      route.continue({ postData: { ...request.postDataJSON(), env } })
    );
    await panel.button('Start').click();
    await expect(panel.state('Starting')).toBeVisible();
    await expect(
      panel.pool.getByRole('progressbar', { name: '0 of 2 ranks ready' })
    ).toBeVisible();
    await page.unroute(/jupyter-dist\/pools/);
    await panel.button('Cancel').click();
    await expect(panel.state('The start was cancelled.')).toBeVisible();
  });

  await test.step('start with the keyboard', async () => {
    await panel.stepper.press('Enter');
    await panel.expectRunning(2);
    for (const rank of [0, 1]) {
      await expect(panel.tile(rank)).toContainText(/CPU|GPU \d+/);
      await expect(panel.tile(rank)).toContainText(/idle \d+ (s|min)/);
      await expect(panel.tile(rank)).toContainText(/pid \d+/);
    }
    await expect(panel.root).toContainText(/2 ranks · gloo/);
    await expect(panel.root).toContainText('life.ipynb');
    await panel.expectCommands([
      'Restart Ranks…',
      'Run All Cells on Ranks',
      'Show Ranks & GPUs',
      'Stop Ranks…'
    ]);
  });

  await test.step('a cell runs on both ranks, and its output is merged', async () => {
    await notebooks.run(0);
    await expect(busy).toHaveCount(2);
    await expect(panel.pool.getByText(/cell \[1\] · \d+ s/)).toBeVisible();
    const output = notebooks.output(0);
    await expect(output).toContainText('ready');
    await expect(output).toContainText('rank 0');
    await expect(output).toContainText('rank 1');
    await notebooks.write('go', '');
    await expect(idle).toHaveCount(2);
  });

  await test.step('Interrupt ends the cell and keeps the variables', async () => {
    await notebooks.run(1);
    await expect(busy).toHaveCount(2);
    await panel.button('Interrupt').click();
    const result = notebooks.output(1).first();
    await expect(result).toContainText(
      /Interrupted: ranks 0-1 were in Python code \(line \d\); all variables are kept\./
    );
    const trace = result.getByText('KeyboardInterrupt');
    await expect(trace).toBeHidden();
    await result.getByText('Details', { exact: true }).click();
    await expect(trace).toBeVisible();
    await expect(idle).toHaveCount(2);
    await notebooks.run(2);
    await expect(notebooks.output(2)).toContainText('kept 42');
  });

  await test.step('Restart… replaces every process', async () => {
    const before = await panel.pids();
    expect(before).toHaveLength(2);
    await panel.answer('Restart…', 'Restart all ranks?', 'Cancel');
    expect(await panel.pids()).toEqual(before);
    await panel.answer('Restart…', 'Restart all ranks?', 'Restart');
    await expect(
      panel.tiles.filter({ hasText: `pid ${before[0]}` })
    ).toHaveCount(0);
    await panel.expectRunning(2);
    const after = await panel.pids();
    expect(after).toHaveLength(2);
    expect(after.filter(pid => before.includes(pid))).toEqual([]);
  });

  await test.step('Stop… ends the pool', async () => {
    await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
    await expect(panel.state('2 ranks stopped.')).toBeVisible();
    await expect(panel.button('Start')).toBeFocused();
    await expect(panel.stepper).toHaveValue('2');
  });
});

test('a pool of the magics appears at once, a dead rank says why, and the pool goes', async ({
  panel,
  notebooks
}) => {
  await notebooks.open('magics.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    'import os\nos.kill(int(open("pid").read()), 9)',
    '%dist_shutdown'
  ]);
  await expect(panel.form).toBeVisible();
  await notebooks.run(0);
  await panel.expectRunning(2);

  await test.step('a rank is killed', async () => {
    const [, pid] = await panel.pids();
    await notebooks.write('pid', `${pid}`);
    await notebooks.run(1);
    await expect(panel.tile(1)).toContainText(
      'dead: killed by signal 9 (SIGKILL)'
    );
    await expect(panel.tile(0)).toContainText('idle');
    await expect(panel.pool.getByRole('alert')).toContainText(
      'Rank 1 died. The other ranks keep their variables; collectives hang until it is restarted.'
    );
  });

  await test.step('it alone is replaced', async () => {
    const [kept, pid] = await panel.pids();
    await panel.button('Restart rank 1').click();
    await panel.expectRunning(2);
    await expect(panel.pool.getByRole('alert')).toHaveCount(0);
    const pids = await panel.pids();
    expect(pids[0]).toBe(kept);
    expect(pids[1]).not.toBe(pid);
  });

  await test.step('Restart… replaces all', async () => {
    const before = await panel.pids();
    await panel.answer('Restart…', 'Restart all ranks?', 'Restart');
    await expect.poll(() => panel.pids()).not.toEqual(before);
    await panel.expectRunning(2);
  });

  await notebooks.run(2);
  await expect(panel.state('2 ranks stopped.')).toBeVisible();
  await expect(panel.form).toBeVisible();
});

test('a failed start says why', async ({ page, panel, notebooks }) => {
  await notebooks.openWithFailedPool('failed.ipynb');
  await expect(panel.state('Failed')).toBeVisible();
  await expect(panel.pool.getByRole('alert')).toContainText(/torch/);
  const log = panel.pool.getByLabel('Last lines of stderr');
  await expect(log).toContainText('torch is broken here');

  await panel.button('Copy').click();
  await expect(panel.button('Copied')).toBeVisible();
  // All of it, of which the panel shows the end.
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(
    await log.innerText()
  );

  await panel.button('Start again').click();
  await panel.expectRunning(2);
});

test('without the server extension, the panel says what to run', async ({
  page,
  panel
}) => {
  const missing = panel.state(
    'jupyter server extension enable jupyter_dist_server'
  );
  await expect(missing).toBeHidden();
  await page.route('**/jupyter-dist/**', route =>
    route.fulfill({ status: 404 })
  );
  await page.reload();
  await panel.open();
  await expect(missing).toBeVisible();
  await panel.button('Copy').click();
  await expect(panel.button('Copied')).toBeVisible();
  await panel.expectRight();

  await page.unroute('**/jupyter-dist/**');
  await panel.button('Check again').click();
  await expect(missing).toBeHidden();
  await expect(
    panel.pool.getByText('Open a notebook to start ranks for it.')
  ).toBeVisible();
});

test('the panel follows the current notebook, and survives a reload', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('one.ipynb', ['']);
  await panel.start(2);
  await panel.expectRunning(2);
  const pids = await panel.pids();

  await notebooks.open('two.ipynb', ['']);
  await expect(panel.root).toContainText('two.ipynb');
  await expect(panel.form).toBeVisible();
  await expect(panel.tiles).toHaveCount(0);

  await notebooks.turnTo('one.ipynb');
  await expect(panel.root).toContainText('one.ipynb');
  expect(await panel.pids()).toEqual(pids);

  await page.reload();
  await expect(panel.root).toBeVisible();
  await notebooks.turnTo('one.ipynb');
  await panel.expectRunning(2);
  expect(await panel.pids()).toEqual(pids);
});
