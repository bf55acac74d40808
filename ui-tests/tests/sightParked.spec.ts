/*
 * A parked pool in the panel: what it keeps, and what can be done with it.
 */
import { expectAccessibleInBothThemes } from './accessibility';
import { PretendedPool } from './pretendedPool';
import { expectInSight, onEach, scrollers, SIGHT } from './sight';
import { expect, Panel, test } from './support';

test.use(SIGHT);

test('what a parked pool keeps, and how it goes on, is in sight', async ({
  page,
  notebooks
}) => {
  const pretended = await PretendedPool.follow(page);
  await page.goto();
  const panel = new Panel(page);
  await panel.open();
  await notebooks.open('many.ipynb', ['']);
  const kernel = await notebooks.kernel('many.ipynb');
  const since = Math.floor(Date.now() / 1000) - 725;
  const parkable = { leases: 'exclusive', park_after: 1200 };
  const parked = { since, nbytes: 124.8 * 2 ** 30, leased: false };
  const idle = { cell: 6 };
  const check = async () => {
    await expectAccessibleInBothThemes(page, ['#jupyter-dist-panel']);
    await page.theme.setLightTheme();
  };

  await onEach(panel, 'parked', async () => {
    pretended.say(kernel, [idle, idle, idle, idle], {
      ...{ ...parkable, state: 'SUSPENDED', parked }
    });
    await expectInSight(panel, panel.state('Parked'));
    const note = panel.pool.getByText(
      /^Parked for 12 min: .*GPUs 0, 1, 2, 3\./
    );
    await expect(note).toContainText('What was there (125 GiB) is kept');
    await expectInSight(panel, note);
    await expectInSight(panel, panel.button('Resume'));
    await expectInSight(panel, panel.tile(3));
    await expect(panel.tile(3)).toContainText('parked');
    await expect(panel.tile(3)).not.toContainText('%');
    expect((await scrollers(panel)).length).toBeLessThanOrEqual(1);
  });
  await check();

  await test.step('the keyboard resumes it, and lets it stay', async () => {
    // The server does not know the pool, and says so.
    const refused = panel.pool.getByRole('alert').getByText(/no pool/);
    const press = async (name: string, path: RegExp) => {
      const asked = page.waitForRequest(path);
      await panel.button(name).press('Enter');
      await asked;
      await expectInSight(panel, refused);
      await panel.button('Dismiss').press('Enter');
      await expect(refused).toBeHidden();
    };
    await press('Resume', /pools\/pretended\/resume/);
    pretended.say(kernel, [idle, idle, idle, idle], {
      ...{ ...parkable, state: 'SUSPENDED', parked },
      parking: {
        resume: true,
        reason: 'GPU 1 is leased by bob.',
        line: { place: 2, expected: null, certain: false },
        failure: null
      }
    });
    await expect(panel.state('Waiting for GPUs')).toBeVisible();
    await expect(panel.pool.getByText('#2 in line')).toBeVisible();
    await check();
    await press('Stay Parked', /pools\/pretended\/park/);
  });
});
