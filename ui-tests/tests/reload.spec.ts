import { execFileSync } from 'node:child_process';

import { galata } from '@jupyterlab/galata';
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Page } from '@playwright/test';

import { expectAccessible } from './accessibility';
import { expect, test } from './support';
import type { Notebooks } from './support';

const INIT = '%load_ext jupyter_dist_server\n%dist_init -n 2';

/** A result of a plain cell, where ipykernel tells of results. */
const RESULT = execFileSync('python', [
  '-c',
  `from ipykernel.displayhook import ZMQShellDisplayHook as Hook
print('7' if hasattr(Hook, 'register_hook') else '')`
])
  .toString()
  .trim();

/** Fulfilled once the kernel has told a new page what it has missed; `first`: before it does anything else. */
function answer(page: Page, when?: 'first'): Promise<void> {
  return new Promise((resolve, reject) =>
    page.on('websocket', socket => {
      let hasAsked = false;
      socket.on('framesent', ({ payload }) => {
        hasAsked ||= payload.includes('jupyter_dist_replay');
        // JupyterLab sends it when a busy kernel has not answered for 3 s.
        if (when === 'first' && payload.includes('comm_info_request')) {
          reject(new Error('JupyterLab was first.'));
        }
      });
      socket.on('framereceived', ({ payload }) => {
        if (hasAsked && payload.includes('comm_msg')) {
          resolve();
        }
      });
    })
  );
}

/** A plain cell that goes on once a file is there. */
function waiting(file: string, then = ''): string {
  return `import os, time
print('first')
while not os.path.exists('${file}'):
    time.sleep(0.05)
print('last')
${then}`;
}

async function expectText(
  notebooks: Notebooks,
  index: number,
  ...texts: (string | RegExp)[]
): Promise<void> {
  for (const text of texts) {
    await expect(notebooks.output(index)).toContainText(text);
  }
}

async function expectIdle(
  page: IJupyterLabPageFixture,
  kernel: string
): Promise<void> {
  await expect
    .poll(async () => {
      const reply = await page.request.get(`api/kernels/${kernel}`);
      return (await reply.json()).execution_state;
    })
    .toBe('idle');
}

/** Run a command in the current notebook, and do not wait for its end. */
function start(page: Page, command: string): Promise<void> {
  return page.evaluate(command => {
    void window.jupyterapp.commands.execute(command);
  }, command);
}

/** The cells of the current notebook as they would be saved. */
function contents(page: Page): Promise<unknown> {
  return page.evaluate(() => {
    const { content } = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return JSON.parse(
      JSON.stringify(content.model!.sharedModel.toJSON().cells)
    );
  });
}

const WAIT = `%%distributed
import os, time
print('first')
while not os.path.exists('on'):
    time.sleep(0.05)
print('goes on')
while not os.path.exists('go'):
    time.sleep(0.05)
for i in range(1000):
    print('line', i)
print('last')`;

test('a cell that runs while the page is loaded again goes on showing what it does', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('one.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    WAIT
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(notebooks.output(1)).toContainText('first');

  await page.theme.setDarkTheme();
  await page.reload();
  await notebooks.turnTo('one.ipynb');
  await expect(panel.tile(1)).toContainText('busy');
  await expect(notebooks.output(1)).toContainText('first');
  await expect(notebooks.output(1)).not.toContainText('last');
  await expect(page.locator('body')).toHaveAttribute(
    'data-jp-theme-light',
    'false'
  );
  await expectAccessible(page, [
    '#jupyter-dist-panel',
    '.jp-dist-OutputTabs',
    '.jp-dist-TextBlock'
  ]);
  await notebooks.write('on', '');
  await expect(notebooks.output(1)).toContainText('goes on');
  await notebooks.write('go', '');
  await expect(notebooks.output(1)).toContainText('line 0');
  await expect(async () => {
    await notebooks
      .output(1)
      .getByRole('button', { name: 'Copy all of this tab' })
      .click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const bare = copied.split('\n').map(line => line.replace(/^\[0-1\] */, ''));
    expect(bare.filter(line => line)).toEqual([
      'first',
      'goes on',
      ...[...Array(1000).keys()].map(i => `line ${i}`),
      'last'
    ]);
  }).toPass({ timeout: 45_000 });
});

const SILENT = `%%distributed
import os, time
while not os.path.exists('speak'):
    time.sleep(0.05)
print('at last')`;

test('a cell that has shown nothing yet shows what comes after the page was loaded again', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('silent.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    SILENT
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(panel.tile(1)).toContainText('busy');

  const answered = answer(page);
  await page.reload();
  await notebooks.turnTo('silent.ipynb');
  await answered;
  await notebooks.write('speak', '');
  await expect(notebooks.output(1)).toContainText('at last');
});

/** So few that all are drawn. */
const FEW = WAIT.replace('1000', '3');

test('all cells that run show what they do after two reloads, plain or on ranks', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('all.ipynb', [
    INIT,
    waiting('go', `print('x' * 10)\n${RESULT}`),
    "from IPython.display import display\ndisplay('shown')\nprint('plain')",
    FEW,
    "%%rank 1\nprint('on a rank')"
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await page.evaluate(() => {
    const { content } = window.jupyterapp.shell.currentWidget as NotebookPanel;
    content.activeCellIndex = 1;
  });
  await start(page, 'notebook:run-all-below');
  await expectText(notebooks, 1, 'first');

  const answered = answer(page, 'first');
  await page.reload();
  await notebooks.turnTo('all.ipynb');
  await answered;
  await expectText(notebooks, 1, 'first');
  await page.reload();
  await notebooks.turnTo('all.ipynb');
  await expectText(notebooks, 1, 'first');
  await notebooks.write('go', '');
  await notebooks.write('on', '');
  await expectText(notebooks, 1, 'last', 'xxxxxxxxxx', RESULT);
  await expectText(notebooks, 2, 'shown', 'plain');
  await expectText(notebooks, 3, 'line 2', 'last');
  await expectText(notebooks, 4, 'on a rank');
  await expectIdle(page, await notebooks.kernel('all.ipynb'));
  const cells = page.locator('.jp-NotebookPanel:visible .jp-Cell');
  for (let index = 1; index < 5; index++) {
    await expect(cells.nth(index)).not.toContainText('[*]');
  }
});

test('a page that is closed in a cell, and opened after it, has all of it until it is saved', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  const plain = waiting('go');
  await notebooks.open('closed.ipynb', [INIT, plain, FEW]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('docmanager:save')
  );
  await notebooks.run(1);
  await notebooks.run(2);
  await expectText(notebooks, 1, 'first');
  const kernel = await notebooks.kernel('closed.ipynb');
  const url = page.url();
  const { request } = page;
  await page.goto('about:blank', { waitForIsReady: false } as never);
  for (const file of ['go', 'on']) {
    await request.put(`api/contents/${tmpPath}/${file}`, {
      data: { type: 'file', format: 'text', content: '' }
    });
  }
  await expect
    .poll(async () => {
      const reply = await request.get(`api/kernels/${kernel}`);
      return (await reply.json()).execution_state;
    })
    .toBe('idle');
  await page.goto(url);
  await notebooks.turnTo('closed.ipynb');
  await expectText(notebooks, 1, 'first', 'last');
  await expectText(notebooks, 2, 'goes on', 'last');

  const told = new Promise<void>(resolve =>
    page.on('websocket', socket =>
      socket.on('framesent', ({ payload }) => {
        if (
          payload.includes('jupyter_dist_replay') &&
          payload.includes('saved')
        ) {
          resolve();
        }
      })
    )
  );
  await page.reload();
  await notebooks.turnTo('closed.ipynb');
  await expectText(notebooks, 1, 'first', 'last');
  await start(page, 'notebook:clear-all-cell-outputs');
  await expect(notebooks.output(1)).not.toContainText('first');
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('docmanager:save')
  );
  await told;
  const answered = answer(page);
  await page.reload();
  await notebooks.turnTo('closed.ipynb');
  await answered;
  await expect(notebooks.output(1)).not.toContainText('first');
});

const RICH = `import os, sys, time
from IPython.display import clear_output, display
print('gone')
clear_output()
handle = display('0 %', display_id=True)
print('a\\rb')
while not os.path.exists('rich'):
    time.sleep(0.05)
print('out')
print('err', file=sys.stderr)
handle.update('100 %')
display({'text/html': '<b>bold</b>'}, raw=True)
print('last')
${RESULT}`;

test('a second window that was open before shows the cell, each line once, and saves nothing', async ({
  page,
  panel,
  notebooks,
  browser,
  baseURL,
  tmpPath,
  waitForApplication
}) => {
  const many = "for i in range(300):\n    print('line', i, flush=i % 7 == 0)";
  await notebooks.open('two.ipynb', [
    ...[INIT, waiting('go', many), FEW, RICH, '1 / 0']
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('docmanager:save')
  );
  const { page: other } = await galata.newPage({
    ...{ baseURL: baseURL!, tmpPath, waitForApplication, browser },
    ...{ mockKernels: false, mockSessions: false, resetWorkspace: false },
    appPath: '/lab/workspaces/other'
  });
  const answered = answer(other);
  await other.evaluate(async path => {
    const panel = await window.jupyterapp.commands.execute('docmanager:open', {
      path
    });
    await panel.sessionContext.ready;
  }, `${tmpPath}/two.ipynb`);
  await answered;
  const cell = (where: Page, index: number) =>
    where.locator('.jp-NotebookPanel:visible .jp-Cell').nth(index);
  const there = (index: number) =>
    cell(other, index).locator('.jp-Cell-outputArea');
  const isDirty = () =>
    other.evaluate(() => {
      const { context } = window.jupyterapp.shell
        .currentWidget as NotebookPanel;
      return context.model.dirty;
    });
  const lines = [...Array(300).keys()].map(i => `line ${i}`);
  await notebooks.run(1);
  await expect(there(1)).toContainText('first');
  await notebooks.write('go', '');
  await expect(there(1)).toContainText('line 299');
  expect((await there(1).innerText()).trim().split('\n')).toEqual([
    ...['first', 'last'],
    ...lines
  ]);
  expect(await isDirty()).toBe(false);

  // What the window that runs them has is what would be saved without a reload.
  for (const index of [2, 3, 4]) {
    await notebooks.run(index);
  }
  await expect(there(2)).toContainText('first');
  const again = answer(other);
  await other.reload();
  await other.getByRole('main').getByRole('tab', { name: 'two.ipynb' }).click();
  await again;
  await expect(there(2)).toContainText('first');
  await notebooks.write('on', '');
  await expect(there(3)).toContainText('0 %');
  await notebooks.write('rich', '');
  await expect(there(4)).toContainText('ZeroDivisionError');
  await expectIdle(page, await notebooks.kernel('two.ipynb'));
  for (const index of [1, 2, 3, 4]) {
    await expect(cell(other, index)).not.toContainText('[*]');
  }
  expect(await contents(other)).toEqual(await contents(page));
  await other.close();
});

interface IText {
  name?: string;
  text?: string;
  data?: Record<string, string>;
  metadata?: Record<string, string>;
}

/** Joins text of ranks: it is a stream, or a display if it stood still for a moment. */
function joined(outputs: IText[]): IText[] {
  const found: IText[] = [];
  for (const output of outputs) {
    const stream = output.metadata?.jupyter_dist_stream;
    const { name, text } = stream
      ? { name: stream, text: `${output.data?.['text/plain']}\n` }
      : output;
    const last = found[found.length - 1];
    if (text !== undefined && last?.name === name) {
      last.text += text;
    } else {
      found.push(text === undefined ? output : { name, text });
    }
  }
  return found;
}

test('the file is the same as without a reload', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  const read = async (name: string) => {
    await page.evaluate(() =>
      window.jupyterapp.commands.execute('docmanager:save')
    );
    const answer = await page.request.get(`api/contents/${tmpPath}/${name}`);
    const { cells } = (await answer.json()).content as {
      cells: { outputs: IText[]; execution_count: number }[];
    };
    return cells.slice(1).map(({ outputs, execution_count }) => ({
      outputs: joined(outputs),
      execution_count
    }));
  };
  const cells = [INIT, waiting('go'), FEW, RICH, '1 / 0'];
  const files = ['go', 'on', 'rich'];
  const saved: unknown[] = [];
  for (const name of ['plain.ipynb', 'again.ipynb']) {
    await notebooks.open(name, cells);
    await notebooks.run(0);
    await panel.expectRunning(2);
    for (const index of [1, 2, 3, 4]) {
      await notebooks.run(index);
    }
    await expectText(notebooks, 1, 'first');
    if (name === 'again.ipynb') {
      await page.reload();
      await notebooks.turnTo(name);
      await expectText(notebooks, 1, 'first');
    }
    await notebooks.write('go', '');
    await expectText(notebooks, 2, 'first');
    await notebooks.write('on', '');
    await expectText(notebooks, 3, '0 %');
    await notebooks.write('rich', '');
    await expectText(notebooks, 4, 'ZeroDivisionError');
    await expectText(notebooks, 3, '100 %');
    saved.push(await read(name));
    for (const file of files) {
      await page.request.delete(`api/contents/${tmpPath}/${file}`);
    }
  }
  expect(saved[1]).toEqual(saved[0]);
});

test.describe('with a kernel that may be interrupted and restarted', () => {
  // Galata's own list of kernels would not let it.
  test.use({ kernels: null, sessions: null });
  // Nor does it shut down those that are left.
  test.afterEach(async ({ page }) => {
    const answer = await page.request.get('api/sessions');
    for (const { id } of await answer.json()) {
      await page.request.delete(`api/sessions/${id}`);
    }
  });

  test('a cell that is followed asks its user, and can be stopped', async ({
    page,
    panel,
    notebooks
  }) => {
    await notebooks.open('asks.ipynb', [
      INIT,
      "print('got', input('Your name?'))",
      "%%rank 1\nprint('got', input('Your rank?'))",
      waiting('never'),
      `%%distributed\n${waiting('never')}`
    ]);
    await notebooks.run(0);
    await panel.expectRunning(2);
    const field = page.locator('.jp-NotebookPanel:visible .jp-Stdin-input');
    for (const [index, asked] of ['Your name?', 'Your rank?'].entries()) {
      await notebooks.run(index + 1);
      await expectText(notebooks, index + 1, asked);
      await page.reload();
      await notebooks.turnTo('asks.ipynb');
      await expect(field).toHaveCount(1);
      await expectText(notebooks, index + 1, asked);
      await field.fill('Ada');
      await field.press('Enter');
      await expectText(notebooks, index + 1, /got Ada/);
      await expect(field).toHaveCount(0);
      await expectText(notebooks, index + 1, `${asked} Ada`);
    }

    for (const [index, said] of [
      'KeyboardInterrupt',
      'Interrupted'
    ].entries()) {
      await notebooks.run(index + 3);
      await expectText(notebooks, index + 3, 'first');
      await page.reload();
      await notebooks.turnTo('asks.ipynb');
      await expectText(notebooks, index + 3, 'first');
      await start(page, 'notebook:interrupt-kernel');
      await expectText(notebooks, index + 3, said);
    }
  });

  test('a cell that is followed says why its ranks wait', async ({
    page,
    panel,
    notebooks
  }) => {
    await notebooks.open('hangs.ipynb', [
      INIT,
      '%%distributed\nif rank == 0:\n    dist.barrier()'
    ]);
    await notebooks.run(0);
    await panel.expectRunning(2);
    await notebooks.run(1);
    await expect(panel.tile(0)).toContainText('busy');
    // Before it is said, and after.
    for (let round = 0; round < 2; round++) {
      await page.reload();
      await notebooks.turnTo('hangs.ipynb');
      await expectText(notebooks, 1, 'Rank 0 waits in barrier');
    }
    await start(page, 'notebook:interrupt-kernel');
    await expectText(notebooks, 1, 'Interrupted');
  });

  test('a cell that is followed ends with its kernel', async ({
    page,
    panel,
    notebooks
  }) => {
    await notebooks.open('ends.ipynb', [INIT, waiting('never')]);
    await notebooks.run(0);
    await panel.expectRunning(2);
    await notebooks.run(1);
    await expectText(notebooks, 1, 'first');
    await page.reload();
    await notebooks.turnTo('ends.ipynb');
    const prompt = page
      .locator('.jp-NotebookPanel:visible .jp-Cell')
      .nth(1)
      .locator('.jp-InputPrompt');
    await expect(prompt).toHaveText('[*]:');
    await page.evaluate(async () => {
      const { sessionContext } = window.jupyterapp.shell
        .currentWidget as NotebookPanel;
      await sessionContext.session!.kernel!.restart();
    });
    await expect(prompt).not.toHaveText('[*]:');
    await expectText(notebooks, 1, 'first');
  });
});
