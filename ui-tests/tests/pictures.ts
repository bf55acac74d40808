/*
 * Pictures of the documentation: `make screenshots` draws them, and other runs of the tests do not.
 */
import { galata } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import * as path from 'path';

const IMAGES = path.resolve(__dirname, '../../docs/images');
/** JupyterLab's own, and the least. */
const PANEL_WIDTH = 250;
const FONTS = {
  text: '"Liberation Sans", Arial, sans-serif',
  code: '"DejaVu Sans Mono", Menlo, monospace'
};

/** What a test uses whose pictures are shown. */
export const LOOK = {
  viewport: { width: 1280, height: 860 },
  deviceScaleFactor: 1.5,
  mockSettings: {
    '@jupyterlab/apputils-extension:notification':
      galata.DEFAULT_SETTINGS['@jupyterlab/apputils-extension:notification'],
    '@jupyterlab/apputils-extension:themes': {
      overrides: {
        'code-font-family': FONTS.code,
        'content-font-family': FONTS.text,
        'ui-font-family': FONTS.text
      }
    },
    '@jupyterlab/codemirror-extension:plugin': {
      defaultConfig: { cursorBlinkRate: 0 }
    },
    // By default, JupyterLab 4.2 has only the cells in sight in the page.
    '@jupyterlab/notebook-extension:tracker': {
      ...galata.DEFAULT_SETTINGS['@jupyterlab/notebook-extension:tracker'],
      windowingMode: 'defer'
    }
  }
};

/** Leaves nothing but the panel and one notebook. */
export async function tidy(page: IJupyterLabPageFixture): Promise<void> {
  await page.sidebar.setWidth(PANEL_WIDTH, 'left');
  const launcher = page
    .getByRole('main')
    .getByRole('tab', { name: 'Launcher' });
  // There is none where the notebook was quicker.
  if (await launcher.isVisible()) {
    await launcher.locator('.lm-TabBar-tabCloseIcon').click();
  }
  await page.mouse.move(0, 0);
  // Web components do not follow the fonts of the settings.
  await page.addStyleTag({
    content: `:root, body, jp-button { --body-font: ${FONTS.text} !important; }`
  });
}

/** Draws the page, or a part of it, in the light theme and in the dark one. */
export async function draw(
  page: IJupyterLabPageFixture,
  name: string,
  of: Page | Locator = page
): Promise<void> {
  if (!process.env.JUPYTER_DIST_SCREENSHOTS) {
    return;
  }
  const shoot = async (theme: string) => {
    await hidePaths(page);
    await of.screenshot({
      path: `${IMAGES}/${name}-${theme}.png`,
      animations: 'disabled'
    });
  };
  await shoot('light');
  await page.theme.setDarkTheme();
  await shoot('dark');
  await page.theme.setLightTheme();
}

/** Draws a part of the page for those who change it, into the folder that they name. */
export async function show(of: Locator, name: string): Promise<void> {
  const folder = process.env.JUPYTER_DIST_PICTURES;
  if (folder) {
    await of.screenshot({ path: `${folder}/${name}.png` });
  }
}

/** Where Python and the tests' files lie on the machine that draws is of no interest to readers. */
export async function hidePaths(page: IJupyterLabPageFixture): Promise<void> {
  await page.evaluate(() => {
    const texts = document.createTreeWalker(
      document.body,
      NodeFilter.SHOW_TEXT
    );
    while (texts.nextNode()) {
      const { currentNode: node } = texts;
      const { data } = node as Text;
      const shown = data
        .replace(/\/\S+\/bin\/python[\d.]*/, '/opt/jupyter/bin/python')
        .replace(/\/\S*galata-test-[^/\s]*\/[^/\s]*/, '/home/ada/digits')
        .replace(/\b[\w-]+-(screenshots|animation)\//, '');
      if (shown !== data) {
        (node as Text).data = shown;
      }
    }
  });
}
