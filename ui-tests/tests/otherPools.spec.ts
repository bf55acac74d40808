import { expect, test } from './support';

test('a pool whose kernel is gone stays in sight, to be used or stopped', async ({
  page,
  panel,
  notebooks
}) => {
  const kill = 'import os\nos.kill(os.getpid(), 9)';
  const others = panel.root.getByRole('region', {
    name: 'Other pools Section'
  });
  const other = others.getByRole('listitem', { name: 'Pool of one.ipynb' });
  const stop = other.getByRole('button', { name: 'Stop…' });
  await notebooks.open('one.ipynb', [kill]);
  await panel.start(2);
  await panel.expectRunning(2);
  const pids = await panel.pids();

  await test.step('another notebook sees it', async () => {
    await notebooks.open('two.ipynb', [kill]);
    await panel.root.getByRole('heading', { name: 'Other pools' }).click();
    await expect(other).toContainText('Running');
    await expect(other).toContainText(/2 ranks · CPU · \d+ MiB/);
    await other.getByRole('button', { name: 'Open notebook' }).click();
    await panel.expectRunning(2);
    await expect(others).toContainText('No other pool runs');
  });

  await test.step('it is orphaned', async () => {
    await notebooks.run(0);
    const note = panel.state('has been gone since');
    await expect(note).toContainText('Restart the kernel');
    await notebooks.turnTo('two.ipynb');
    await expect(panel.root).toContainText('1 orphaned');
    await expect(other).toContainText('has been gone since');
    await panel.expectRight();
  });

  await test.step('this notebook goes on with it', async () => {
    await other.getByRole('button', { name: 'Attach' }).click();
    await expect(notebooks.output(1)).toContainText('Attached to pool');
    await panel.expectRunning(2);
    expect(await panel.pids()).toEqual(pids);
    await expect(others).toContainText('No other pool runs');
  });

  await test.step('Stop… ends it', async () => {
    await notebooks.run(0);
    await notebooks.open('three.ipynb', ['']);
    await expect(other).toContainText('Orphaned');
    await stop.click();
    const dialog = page.getByRole('dialog').filter({ hasText: 'Stop all' });
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
    await expect(others).toContainText('No other pool runs');
    await expect(panel.form).toBeVisible();
  });
});
