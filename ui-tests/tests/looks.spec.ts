import { expect, test } from './support';

test('nothing in the panel is a barrier, in the light and in the dark theme', async ({
  page,
  panel,
  notebooks
}) => {
  const readColour = () =>
    panel.pool.evaluate(node => getComputedStyle(node).color);

  /** Looks at the panel in the current theme and in the other one, which then stays. */
  const checkBothThemes = async (state: string): Promise<void> => {
    await test.step(state, async () => {
      await panel.expectAccessible();
      const [before, theme] = [await readColour(), await page.theme.getTheme()];
      if (theme === 'JupyterLab Light') {
        await page.theme.setDarkTheme();
      } else {
        await page.theme.setLightTheme();
      }
      await panel.expectAccessible();
      expect(await readColour()).not.toBe(before);
    });
  };

  await page.theme.setLightTheme();
  await notebooks.openWithFailedPool('looks.ipynb');
  await expect(panel.state('Failed')).toBeVisible();
  await checkBothThemes('failed');

  await panel.button('Start again').click();
  await panel.expectRunning(2);
  await checkBothThemes('running');

  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  await expect(panel.form).toBeVisible();
  await checkBothThemes('start');
});
