import type { Locator } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { draw, LOOK } from './pictures';
import { expect, test } from './support';
import type { Panel } from './support';

/** What a test uses whose panel must be in sight. */
export const SIGHT = {
  ...LOOK,
  deviceScaleFactor: 1,
  baseURL: FAKE_GPUS_URL,
  // The stream is to be caught before the page asks for it.
  autoGoto: false,
  // Nobody wants to wait for long here.
  mockSettings: {
    ...LOOK.mockSettings,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
};

const SCREENS = [
  { width: 1280, height: 720, panel: 250 },
  { width: 1920, height: 1080, panel: 360 }
];

/** What is in the panel, and whole. */
export async function expectInSight(
  panel: Panel,
  found: Locator
): Promise<void> {
  const inside = async () => {
    const [outer, box] = await Promise.all([
      panel.root.boundingBox(),
      found.boundingBox()
    ]);
    return (
      box !== null &&
      outer !== null &&
      box.y >= outer.y &&
      box.y + box.height <= outer.y + outer.height &&
      box.x >= outer.x &&
      box.x + box.width <= outer.x + outer.width
    );
  };
  await expect.poll(inside).toBe(true);
}

/** The parts of the panel that scroll. */
export function scrollers(panel: Panel): Promise<string[]> {
  return panel.root.evaluate(root =>
    [...root.querySelectorAll<HTMLElement>('*')]
      .filter(
        node =>
          /auto|scroll/.test(getComputedStyle(node).overflowY) &&
          node.scrollHeight > node.clientHeight
      )
      .map(({ className }) => className)
  );
}

/** Scrolls the panel by as many pixels. */
export async function scrollBy(panel: Panel, pixels: number): Promise<void> {
  await panel.root
    .locator('.lm-AccordionPanel')
    .evaluate((content, top) => content.scrollBy({ top }), pixels);
}

/** Does the same on each screen, and draws the panel as it is then. */
export async function onEach(
  panel: Panel,
  name: string,
  look: (width: number) => Promise<void>,
  isDrawn = true
): Promise<void> {
  const { page } = panel;
  for (const { panel: width, ...viewport } of SCREENS) {
    await test.step(`${name}, ${width} pixels wide`, async () => {
      await page.setViewportSize(viewport);
      await page.sidebar.setWidth(width, 'left');
      await look(width);
      if (isDrawn) {
        await draw(page, `sight-${name}-${width}`, panel.root);
      }
    });
  }
}
