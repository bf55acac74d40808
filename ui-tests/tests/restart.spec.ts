import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SPARE_PORT } from '../playwright.config';
import { expect, test } from './support';

/** Where JupyterHub has the server of a user called Ada. */
const PREFIX = '/user/ada/';
const FOLDER = 'notebooks';
const URL = `http://localhost:${SPARE_PORT}${PREFIX}`;

let server: ChildProcess;
let folder: string;

/** A server of this test's own, which may be killed. */
async function serve(): Promise<void> {
  server = spawn(
    'jupyter',
    [
      'lab',
      '--config=jupyter_server_test_config.py',
      `--ServerApp.base_url=${PREFIX}`
    ],
    {
      env: {
        ...process.env,
        JUPYTER_DIST_TEST_PORT: SPARE_PORT,
        JUPYTERLAB_GALATA_ROOT_DIR: folder
      },
      stdio: 'ignore'
    }
  );
  await expect
    .poll(
      () =>
        fetch(`${URL}api`).then(
          ({ ok }) => ok,
          () => false
        ),
      { timeout: 120_000 }
    )
    .toBe(true);
}

async function end(signal: NodeJS.Signals): Promise<void> {
  const ended = once(server, 'exit');
  server.kill(signal);
  await ended;
}

// What Galata puts before the server would fail while that is away.
test.use({
  baseURL: URL,
  appPath: 'lab',
  // Galata would make one without the prefix.
  tmpPath: FOLDER,
  kernels: null,
  sessions: null,
  terminals: null,
  mockConfig: false,
  mockSettings: false,
  mockState: false,
  mockUser: false
});
test.beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'restart-'));
  await mkdir(join(folder, FOLDER));
  await serve();
});
test.afterAll(async () => {
  await end('SIGTERM');
  await rm(folder, { recursive: true });
});

test('a server that is stopped, and closes no connection, is said to be away', async ({
  page,
  panel
}) => {
  let tellsTime = false;
  page.on('websocket', socket => {
    socket.on('framereceived', ({ payload }) => {
      tellsTime ||= /^\{"type": "time"/.test(`${payload}`);
    });
  });
  await page.reload();
  await panel.open();
  await expect.poll(() => tellsTime).toBe(true);
  const stale = panel.root.getByText(/^Disconnected since .*\. Reconnecting…$/);
  server.kill('SIGSTOP');
  try {
    await expect(stale).toBeVisible({ timeout: 90_000 });
  } finally {
    server.kill('SIGCONT');
  }
  await expect(stale).toBeHidden();
});

test('a cell that is followed goes on, once its server does', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('follow.ipynb', [
    '%load_ext jupyter_dist_server\n%dist_init -n 2',
    `%%distributed
import os, time
print('first')
while not os.path.exists('go'):
    time.sleep(0.05)
print('last')`
  ]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(notebooks.output(1)).toContainText('first');
  await page.reload();
  await notebooks.turnTo('follow.ipynb');
  await expect(notebooks.output(1)).toContainText('first');
  const stale = panel.root.getByText(/^Disconnected since .*\. Reconnecting…$/);
  server.kill('SIGSTOP');
  try {
    await expect(stale).toBeVisible({ timeout: 90_000 });
    await writeFile(join(folder, FOLDER, 'go'), '');
  } finally {
    server.kill('SIGCONT');
  }
  await expect(notebooks.output(1)).toContainText('last');
  const text = await notebooks.output(1).innerText();
  expect(text.match(/first/g)).toHaveLength(1);
  expect(text.match(/last/g)).toHaveLength(1);
  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  await expect(panel.form).toBeVisible();
});

test('below a prefix, the server is killed and comes back: the panel says so, and knows the pool again', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('restart.ipynb', ['%%distributed\nprint("I am", rank)']);
  await panel.start(2);
  await panel.expectRunning(2);
  await notebooks.run(0);
  const output = notebooks.output(0);
  await output.getByRole('tab', { name: 'Rank 1', exact: true }).click();
  await expect(output.getByText('I am 1')).toBeVisible();
  await expect(output.getByText('I am 0')).toBeHidden();
  const pids = await panel.pids();
  const started = Date.now() / 1000;
  // JupyterLab says it too, and more than once.
  const told = page.getByRole('dialog', { name: /^Server Connection Error/ });
  await page.addLocatorHandler(told.first(), () =>
    // The second name is JupyterLab 4.2's.
    told
      .first()
      .getByRole('button', { name: /^(Close|Dismiss)$/ })
      .click()
  );
  const stale = panel.root.getByText(/^Disconnected since .*\. Reconnecting…$/);

  await end('SIGKILL');
  await expect(stale).toBeVisible();
  await expect(panel.tiles).toHaveCount(2);

  await serve();
  // The page tries again after up to 30 s.
  await expect(stale).toBeHidden({ timeout: 90_000 });
  const answer = await page.request.get('jupyter-dist/pools');
  const { pools } = await answer.json();
  expect(pools).toHaveLength(1);
  expect(pools[0].ranks.map(({ pid }: { pid: number }) => pid)).toEqual(pids);
  expect(pools[0].started).toBeLessThanOrEqual(started);

  // Its kernel ended with the server, so it belongs to nobody, until a click gives it to the notebook again.
  await panel.root.getByRole('heading', { name: 'Other pools' }).click();
  const orphan = panel.root.getByRole('listitem', {
    name: 'Pool of restart.ipynb'
  });
  await orphan.getByRole('button', { name: 'Attach' }).click();
  await expect(orphan).toBeHidden();
  await panel.expectRunning(2);
  expect(await panel.pids()).toEqual(pids);
  await panel.answer('Stop…', 'Stop all ranks?', 'Stop');
  await expect(panel.form).toBeVisible();
});
