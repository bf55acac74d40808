import { galata } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Page } from '@playwright/test';

import { expect, test } from './support';

const COUNT = `%%distributed
import os, time
print('first')
while not os.path.exists('on'):
    time.sleep(0.05)
print('goes on')
while not os.path.exists('go'):
    time.sleep(0.05)
print('last')`;

/** Whether jupyter-collaboration is installed, which our tests do not ask for. */
function isShared(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const config = document.getElementById('jupyter-config-data')!;
    const { federated_extensions } = JSON.parse(config.textContent!);
    return federated_extensions.some(
      ({ name }: { name: string }) =>
        name === '@jupyter/collaboration-extension'
    );
  });
}

test('of pages that share a notebook, one writes what a cell puts out, also when the one that ran it is gone', async ({
  page,
  panel,
  notebooks,
  browser,
  baseURL,
  tmpPath,
  waitForApplication
}) => {
  test.skip(!(await isShared(page)), 'jupyter-collaboration is not installed.');
  await notebooks.open('shared.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    COUNT
  ]);
  const lines = (shown: Page) =>
    shown
      .locator('.jp-NotebookPanel:visible .jp-Cell')
      .nth(1)
      .locator('.jp-dist-Row-text:visible');
  const expectLines = async (shown: Page, ...texts: string[]) =>
    expect
      .poll(
        async () => (await lines(shown).allInnerTexts()).join('\n').trim(),
        // A page is told after 30 s that another has gone, and waits for 20 s whether it comes back.
        { timeout: 90_000 }
      )
      .toBe(texts.join('\n'));
  /** Opens it in another browser, which is told of cells that run when it has asked for them. */
  const join = async (workspace: string) => {
    const { page: other } = await galata.newPage({
      ...{ baseURL: baseURL!, tmpPath, waitForApplication, browser },
      ...{ mockKernels: false, mockSessions: false, resetWorkspace: false },
      appPath: `/lab/workspaces/${workspace}`
    });
    const told = new Promise<void>(resolve =>
      other.on('websocket', socket => {
        let hasAsked = false;
        socket.on('framesent', ({ payload }) => {
          hasAsked ||= payload.includes('jupyter_dist_replay');
        });
        socket.on('framereceived', ({ payload }) => {
          if (hasAsked && payload.includes('comm_msg')) {
            resolve();
          }
        });
      })
    );
    await other.evaluate(async path => {
      const panel = await window.jupyterapp.commands.execute(
        'docmanager:open',
        { path }
      );
      await panel.sessionContext.ready;
    }, `${tmpPath}/shared.ipynb`);
    return { other, told };
  };

  await notebooks.run(0);
  await panel.expectRunning(2);
  const { other } = await join('other');
  await test.step('the page that runs it', async () => {
    await other.evaluate(() => {
      const { commands, shell } = window.jupyterapp;
      (shell.currentWidget as NotebookPanel).content.activeCellIndex = 1;
      void commands.execute('notebook:run-cell');
    });
    for (const shown of [page, other]) {
      await expectLines(shown, 'first');
    }
  });

  await test.step('not one that opens it meanwhile', async () => {
    const { other: third, told } = await join('third');
    await told;
    await expectLines(third, 'first');
    await notebooks.write('on', '');
    for (const shown of [page, other, third]) {
      await expectLines(shown, 'first', 'goes on');
    }
    await third.close();
  });

  await test.step('one of the others, when that page is gone', async () => {
    await other.close();
    await notebooks.write('go', '');
    await expectLines(page, 'first', 'goes on', 'last');
    await expect(panel.tile(1)).toContainText('idle');
    await expect(
      page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(1)
    ).not.toContainText('[*]');
  });
});
