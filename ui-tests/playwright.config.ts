import { defineConfig } from '@playwright/test';
import { resolve } from 'path';

const port = process.env.JUPYTER_DIST_TEST_PORT ?? '18888';
const baseURL = `http://localhost:${port}`;
const fakePort = `${Number(port) + 1}`;
/** For a server that a test starts itself. */
export const SPARE_PORT = `${Number(port) + 2}`;
/** A server on a pretend machine with 8 GPUs. */
export const FAKE_GPUS_URL = `http://localhost:${fakePort}`;

const SERVER = {
  timeout: 180_000,
  reuseExistingServer: false,
  // Only a server that may end in its own way ends its pools too.
  gracefulShutdown: { signal: 'SIGTERM' as const, timeout: 20_000 }
};

/** A server on a pretend machine. */
export function onFakeMachine(gpus: number) {
  return {
    command: `python -m tests.fake_nvml.machine --gpus ${gpus} jupyter lab --config ui-tests/jupyter_server_test_config.py`,
    cwd: resolve(__dirname, '..'),
    env: { JUPYTER_DIST_TEST_PORT: fakePort },
    url: `${FAKE_GPUS_URL}/lab`,
    ...SERVER
  };
}

export default defineConfig({
  testDir: 'tests',
  // One server, and few cores: pools that start side by side only slow each other down.
  workers: 1,
  forbidOnly: Boolean(process.env.CI),
  // The longest takes about 20 s on an idle machine.
  timeout: 240_000,
  // A shared CI machine may stall for longer than any sensible limit.
  retries: process.env.CI ? 1 : 0,
  expect: { timeout: 45_000 },
  reporter: [['list'], ['html', { open: 'never' }]],
  projects: [
    {
      name: 'tests',
      testIgnore: [
        'animation.spec.ts',
        'screenshots.spec.ts',
        'restart.spec.ts'
      ]
    },
    // In a process of its own: Galata keeps the base URL of the first page that a process sees.
    { name: 'prefix', testMatch: 'restart.spec.ts' },
    // Only on demand: `make screenshots animation` draws the pictures of the documentation anew.
    ...(process.env.JUPYTER_DIST_SCREENSHOTS
      ? [
          { name: 'animation', testMatch: 'animation.spec.ts' },
          {
            name: 'screenshots',
            testMatch: [
              'screenshots.spec.ts',
              'sight.spec.ts',
              'sightParked.spec.ts',
              'narrow.spec.ts',
              'newcomer.spec.ts',
              'queue.spec.ts',
              'variables.spec.ts'
            ]
          }
        ]
      : [])
  ],
  use: {
    baseURL,
    viewport: { width: 1280, height: 800 },
    video: 'off',
    // A trace has every state of the page; pictures besides would be taken all the time.
    trace: { mode: 'retain-on-failure', screenshots: false },
    permissions: ['clipboard-read', 'clipboard-write'],
    launchOptions: {
      executablePath: process.env.CHROMIUM_PATH || undefined,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync'
      ]
    }
  },
  webServer: [
    {
      command: 'jupyter lab --config jupyter_server_test_config.py',
      env: { JUPYTER_DIST_TEST_PORT: port },
      url: `${baseURL}/lab`,
      ...SERVER
    },
    onFakeMachine(8)
  ]
});
