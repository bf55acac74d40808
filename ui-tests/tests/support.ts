import {
  expect,
  galata,
  JupyterLabPage,
  test as base
} from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { BrowserContext, Locator, Page } from '@playwright/test';

import { expectAccessibleInBothThemes } from './accessibility';
import { cutIn, WHOLE, WIDTHS } from './narrow';

export { expect };

/**
 * The panel as its user finds it: by roles and labels.
 */
export class Panel {
  constructor(readonly page: IJupyterLabPageFixture) {
    this.root = page.getByRole('region', { name: 'Ranks & GPUs' });
    this.pool = this.root.getByRole('region', { name: 'Pool Section' });
    this.gpus = this.root.getByRole('region', { name: 'GPUs Section' });
    this.form = this.pool.getByRole('form', { name: 'Start ranks' });
    this.stepper = this.form.getByRole('spinbutton', {
      name: 'Ranks',
      exact: true
    });
    // More than 8 are squares in a grid.
    this.tiles = this.pool
      .getByRole('list', { name: 'Ranks', exact: true })
      .getByRole('listitem')
      .or(this.pool.getByRole('option'));
  }

  readonly root: Locator;
  readonly pool: Locator;
  readonly gpus: Locator;
  readonly form: Locator;
  readonly stepper: Locator;
  readonly tiles: Locator;

  async open(): Promise<void> {
    const tab = this.page.getByRole('tab', {
      name: 'Ranks & GPUs',
      exact: true
    });
    // A page that is loaded again may show the panel by itself, and a click would then hide it.
    await expect(async () => {
      if (!(await this.root.isVisible())) {
        await tab.click();
      }
      await expect(this.root).toBeVisible({ timeout: 5000 });
    }).toPass();
  }

  tile(rank: number): Locator {
    return this.pool.getByRole('listitem', {
      name: `Rank ${rank}`,
      exact: true
    });
  }

  button(name: string): Locator {
    return this.pool.getByRole('button', { name, exact: true });
  }

  /** The word in the pill, or the sentence above the start form. */
  state(text: string): Locator {
    return this.pool.getByRole('status').filter({ hasText: text });
  }

  async start(ranks: number): Promise<void> {
    await this.stepper.fill(`${ranks}`);
    await this.button('Start').click();
  }

  async expectRunning(ranks: number): Promise<void> {
    await expect(this.state('Running')).toBeVisible();
    await expect(this.tiles).toHaveCount(ranks);
    await expect(this.tiles.filter({ hasText: 'idle' })).toHaveCount(ranks);
  }

  /** Expects the palette to offer these commands of ours, and no others. */
  async expectCommands(labels: string[]): Promise<void> {
    const palette = this.page.locator('.jp-ModalCommandPalette');
    const search = palette.getByRole('textbox');
    const offered = palette
      .locator('.lm-CommandPalette-itemLabel:visible')
      .filter({ hasText: 'Ranks' });
    // Before it has settled JupyterLab takes no shortcuts, and a launcher that comes late closes
    // the palette; it does not say when it has.
    await expect(async () => {
      if (!(await palette.isVisible())) {
        await this.page.keyboard.press('ControlOrMeta+Shift+C');
      }
      await search.fill('Distributed', { timeout: 2000 });
      await expect
        .poll(async () => (await offered.allInnerTexts()).sort(), {
          timeout: 5000
        })
        .toEqual(labels);
    }).toPass({ timeout: 45_000 });
    await this.page.keyboard.press('Escape');
    await expect(palette).toBeHidden();
  }

  /** Clicks a button that asks first, and answers. */
  async answer(button: string, title: string, answer: string): Promise<void> {
    await this.button(button).click();
    const dialog = this.page.getByRole('dialog').filter({ hasText: title });
    await dialog.getByRole('button', { name: answer, exact: true }).click();
    await expect(dialog).toBeHidden();
  }

  /** The process ids that the tiles show. */
  async pids(): Promise<number[]> {
    const texts = await this.tiles.getByText(/^pid \d+$/).allInnerTexts();
    return texts.map(text => Number(text.slice('pid '.length)));
  }

  /** Expects all of it to be readable at its least width and above it, and to be no barrier in either theme. */
  async expectRight(): Promise<void> {
    for (const width of WIDTHS) {
      await this.page.sidebar.setWidth(width, 'left');
      await expect.poll(() => cutIn(this.root, WHOLE)).toEqual([]);
    }
    await expectAccessibleInBothThemes(this.page, ['#jupyter-dist-panel']);
  }
}

/**
 * Notebooks in the folder of the test.
 */
export class Notebooks {
  constructor(
    private readonly _page: IJupyterLabPageFixture,
    private readonly _folder: string
  ) {}

  /** Opens a new notebook with these cells, and waits for its kernel. */
  async open(name: string, cells: string[], title = ''): Promise<void> {
    const { makeCell, makeNotebook } = galata.Notebook;
    const notebook = makeNotebook([
      ...(title ? [makeCell({ cell_type: 'markdown', source: [title] })] : []),
      ...cells.map(source => makeCell({ source: [source] }))
    ]);
    // Galata's are of an older format, in which cells have no ids.
    notebook.nbformat_minor = 5;
    notebook.cells.forEach((cell, index) => (cell.id = `cell-${index}`));
    const path = `${this._folder}/${name}`;
    await this._upload(JSON.stringify(notebook), path);
    await this._page.evaluate(async path => {
      const panel = await window.jupyterapp.commands.execute(
        'docmanager:open',
        { path }
      );
      await panel.sessionContext.ready;
    }, path);
  }

  /** The id of a notebook's kernel. */
  async kernel(name: string): Promise<string> {
    const answer = await this._page.request.get('api/sessions');
    const sessions: { path: string; kernel: { id: string } }[] =
      await answer.json();
    const path = `${this._folder}/${name}`;
    const session = sessions.find(session => session.path === path);
    if (!session) {
      throw new Error(`${path} has no session.`);
    }
    return session.kernel.id;
  }

  /** Writes a file beside the notebooks; answers its path on the server. */
  async write(name: string, text: string): Promise<string> {
    const path = `${this._folder}/${name}`;
    await this._upload(text, path);
    // Galata's own answer is of the first page that this process has seen, perhaps of another server.
    const root = await this._page.evaluate(() => {
      const config = document.getElementById('jupyter-config-data');
      return JSON.parse(config!.textContent!).serverRoot;
    });
    return `${root}/${path}`;
  }

  private async _upload(text: string, path: string): Promise<void> {
    // It says so, and no more, if the server was too busy to take it.
    await expect
      .poll(() => this._page.contents.uploadContent(text, 'text', path))
      .toBe(true);
  }

  /** An environment whose torch is this module. */
  async environmentWithTorch(source: string): Promise<Record<string, string>> {
    const path = await this.write('modules/torch.py', source);
    return { PYTHONPATH: path.slice(0, path.lastIndexOf('/')) };
  }

  /** Opens a new notebook whose first pool fails, because its torch does. */
  async openWithFailedPool(name: string): Promise<void> {
    await this.open(name, ['']);
    const answer = await this._page.request.post('jupyter-dist/pools', {
      data: {
        kernel_id: await this.kernel(name),
        num_ranks: 2,
        env: await this.environmentWithTorch(
          'raise ImportError("torch is broken here")'
        )
      }
    });
    expect(answer.status()).toBe(202);
  }

  /** Turns to a notebook that is open. */
  async turnTo(name: string): Promise<void> {
    await this._page.getByRole('main').getByRole('tab', { name }).click();
  }

  /** Runs a cell of the current notebook; does not wait for its end. */
  async run(index: number): Promise<void> {
    await this._page.evaluate(index => {
      const { commands, shell } = window.jupyterapp;
      const { content } = shell.currentWidget as NotebookPanel;
      content.activeCellIndex = index;
      void commands.execute('notebook:run-cell');
    }, index);
  }

  /** What a cell of the current notebook has printed. */
  output(index: number): Locator {
    return this._page
      .locator('.jp-NotebookPanel:visible .jp-Cell')
      .nth(index)
      .locator('.jp-Cell-outputArea');
  }
}

/** In the address of our scripts, and in the names of our classes. */
const OURS = /jupyter-dist|jp-dist/;
/** What the browser itself says of requests and messages that fail, as some tests want them to. */
const REQUESTS =
  /^Failed to load resource|^WebSocket connection to|^Failed to execute 'postMessage'/;

/** What pages say is wrong with our part of them, from their first moment on. */
function listenForErrors(context: BrowserContext): string[] {
  const errors: string[] = [];
  const add = (text: string) => {
    if (OURS.test(text) && !REQUESTS.test(text)) {
      errors.push(text);
    }
  };
  context.on('weberror', error => {
    const thrown = error.error();
    add(`${thrown.stack ?? thrown}`);
  });
  context.on('console', message => {
    if (message.type() === 'error') {
      add(`${message.text()} (${message.location().url})`);
    }
  });
  return errors;
}

interface IFixtures {
  quietConsole: void;
  panel: Panel;
  notebooks: Notebooks;
}

// Galata gives a page 15 s to load, in which a busy machine may not be done.
const { waitForCondition } = JupyterLabPage.prototype;
JupyterLabPage.prototype.waitForCondition = function (
  condition,
  timeout = 120_000
) {
  return waitForCondition.call(this, condition, timeout);
};

/**
 * A browser with JupyterLab, and the panel open in it.
 */
export const test = base.extend<IFixtures>({
  // Galata waits for the launcher, which is not there when a reload brings notebooks back.
  waitForApplication: async ({ baseURL: _ }, use) => {
    await use(async page => {
      await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
    });
  },
  quietConsole: [
    async ({ context }, use) => {
      const errors = listenForErrors(context);
      await use();
      expect(errors).toEqual([]);
    },
    { auto: true }
  ],
  panel: async ({ page }, use) => {
    const panel = new Panel(page);
    await panel.open();
    await use(panel);
  },
  notebooks: async ({ page, tmpPath }, use) => {
    await use(new Notebooks(page, tmpPath));
  }
});

/** Opens the tab of a job; answers what it shows. */
export async function openJob(page: Page, job: string): Promise<Locator> {
  await page.evaluate(
    job => window.jupyterapp.commands.execute('jupyter-dist:open-job', { job }),
    job
  );
  return page.getByRole('main').locator('.jp-dist-JobDetails:visible');
}

/** Ends what waits and runs, so that it keeps no GPU from another test. */
export async function cancelJobs(page: Page): Promise<void> {
  const answer = await page.request.get('jupyter-dist/jobs?states=R,PD');
  for (const { label } of (await answer.json()).jobs) {
    await page.request.delete(`jupyter-dist/jobs/${label}?now=1`);
  }
}
