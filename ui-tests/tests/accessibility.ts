import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import AxeBuilder from '@axe-core/playwright';
import { expect } from '@playwright/test';
import type { Page } from '@playwright/test';

type Part = Parameters<AxeBuilder['include']>[0];

/** What we add to a page around the panel; JupyterLab's own parts are its own affair. */
export const AROUND: readonly Part[] = [
  '.jp-NotebookPanel:not(.lm-mod-hidden) .jp-dist-RanksItem',
  '.jp-dist-StatusItem',
  '.jp-dist-CellEdge',
  // JupyterLab says of any switch that it is pressed, on a node that may not be.
  { fromShadowDom: ['[data-jp-item-name="dist-run-on-ranks"] > *', 'button'] }
];

/** Expects axe to find nothing wrong in the parts of the page that these selectors find. */
export async function expectAccessible(
  page: Page,
  parts: readonly Part[],
  rules: string[] = []
): Promise<void> {
  const builder = new AxeBuilder({ page })
    // Twice as quick, and no worse where nothing is in a frame of another origin.
    .setLegacyMode()
    .options({ resultTypes: ['violations'] });
  parts.forEach(part => builder.include(part));
  if (rules.length) {
    builder.withRules(rules);
  }
  const { violations } = await builder.analyze();
  expect(
    violations.flatMap(({ id, nodes }) =>
      nodes.map(node => `${id}: ${node.html} ${node.failureSummary}`)
    )
  ).toEqual([]);
}

/** The same, and the contrasts in the other one of the two themes, which then stays. */
export async function expectAccessibleInBothThemes(
  page: IJupyterLabPageFixture,
  parts: readonly Part[]
): Promise<void> {
  const readColour = () =>
    page.evaluate(() => getComputedStyle(document.body).color);
  await expectAccessible(page, parts);
  const [before, theme] = [await readColour(), await page.theme.getTheme()];
  if (theme === 'JupyterLab Light') {
    await page.theme.setDarkTheme();
  } else {
    await page.theme.setLightTheme();
  }
  expect(await readColour()).not.toBe(before);
  await expectAccessible(page, parts, ['color-contrast']);
}
