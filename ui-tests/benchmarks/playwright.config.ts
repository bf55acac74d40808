import { defineConfig } from '@playwright/test';

import tests, { FAKE_GPUS_URL, onFakeMachine } from '../playwright.config';

/** `make bench-front-end`: one server, on a pretend machine with 16 GPUs. */
export default defineConfig({
  ...tests,
  testDir: '.',
  projects: [{ name: 'benchmarks' }],
  timeout: 300_000,
  retries: 0,
  reporter: 'list',
  webServer: onFakeMachine(16),
  use: {
    ...tests.use,
    baseURL: FAKE_GPUS_URL,
    // All 16 curves fit: what is scrolled away is not drawn.
    viewport: { width: 1600, height: 1300 },
    trace: 'off'
  }
});
