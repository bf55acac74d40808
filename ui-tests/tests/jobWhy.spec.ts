import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { LOOK, show } from './pictures';
import { cancelJobs, expect, openJob, test } from './support';

test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

const TRAIN = `
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")

def load_batch(step):
    if dist.get_rank() == 1 and step == 7:
        time.sleep(600)
    return torch.ones(20)

for step in range(100):
    dist.all_reduce(load_batch(step))
`;

test.afterEach(({ page }) => cancelJobs(page));

test('the tab of a job says which rank of its script the others wait for', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  test.setTimeout(300_000);
  await notebooks.write('train.py', TRAIN);
  const answer = await page.request.post('jupyter-dist/jobs', {
    data: {
      ...{ command: ['train.py'], torchrun: true, gpus: 2, cpus: 0 },
      ...{ chdir: tmpPath, env: ['JUPYTER_DIST_WAIT_LIMIT=5'] }
    }
  });
  const job = (await answer.json()).jobs[0].label;
  await expect(panel.root).toBeVisible();
  const tab = await openJob(page, job);
  // The log says it unasked.
  await expect(tab.locator('.jp-dist-JobLog')).toContainText(
    'Rank 1 has not begun it',
    { timeout: 120_000 }
  );
  await tab.getByRole('button', { name: 'Why?' }).press('Enter');
  const told = tab.locator('.jp-dist-JobWhy[role=status]');
  await expect(told).toContainText(
    'Rank 0 waits in all_reduce #8 (20 × float32), begun by dist.all_reduce(load_batch(step)) at train.py line 11. ' +
      'Rank 1 has not begun it: it is in time.sleep, train.py line 7.'
  );
  await expect(told.locator('pre')).toBeHidden();
  await told.getByText('Stacks of all ranks').click();
  await expect(told.locator('pre')).toContainText('in load_batch');
  await expectAccessibleInBothThemes(page, ['.jp-dist-JobDetails']);
  await show(tab, 'job-why');
});
