import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator } from '@playwright/test';
import { readFile } from 'fs/promises';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { expect, test } from './support';

/** Other tests on this server may have run cells too. */
const RAN =
  /^Cell \[2\] ran for (< |\d+ min )?\d+ s on ranks 0–1, .*train.ipynb/;

const UNTIL_TOLD = `%%distributed
import os, time
while not os.path.exists('go'):
    time.sleep(0.1)`;

/**
 * The timeline as its user finds it.
 */
class Timeline {
  constructor(private readonly _page: IJupyterLabPageFixture) {
    this.root = _page.locator('#jupyter-dist-timeline');
    this.curves = this.root.getByRole('group', { name: /^GPU curves/ });
  }

  readonly root: Locator;
  readonly curves: Locator;

  async open(): Promise<void> {
    // JupyterLab may bring a notebook to the front again, however late, so it is opened again then.
    await expect(async () => {
      await this._page.evaluate(async () => {
        await window.jupyterapp.commands.execute('jupyter-dist:open-timeline');
      });
      await expect(this.root).toBeVisible({ timeout: 5000 });
    }).toPass();
  }

  chart(gpu: number): Locator {
    return this.curves.getByRole('img', {
      name: new RegExp(`^GPU ${gpu} ·`)
    });
  }

  /** What stands for the newest such cell above the curves. */
  cell(name: RegExp): Locator {
    return this.curves.getByRole('button', { name }).last();
  }

  button(name: string | RegExp): Locator {
    return this.root.getByRole('button', { name });
  }

  async expectAccessible(): Promise<void> {
    await expectAccessibleInBothThemes(this._page, ['#jupyter-dist-timeline']);
  }
}

test.describe('on a pretend machine', () => {
  test.use({ baseURL: FAKE_GPUS_URL });

  test('eight curves that can be zoomed, paused and saved', async ({
    page
  }) => {
    const timeline = new Timeline(page);
    await timeline.open();
    // Another process is on GPU 6, and perhaps there was a test on others.
    await timeline.button(/free GPUs?: /).click();
    await expect(timeline.chart(7)).toBeVisible();
    await expect(timeline.root.getByLabel('GPUs', { exact: true })).toHaveValue(
      'all'
    );
    await expect(timeline.chart(6)).toHaveAccessibleName(
      /utilization: 64 % · memory: /
    );
    await timeline.root
      .getByLabel('Metric', { exact: true })
      .selectOption('Temperature');
    await expect(timeline.chart(6)).toHaveAccessibleName(
      /temperature: 84 °C · memory: /
    );
    await timeline.root
      .getByLabel('Range', { exact: true })
      .selectOption('last 1 minute');

    await test.step('zoom', async () => {
      const reset = timeline.button('Reset zoom');
      await expect(reset).toBeDisabled();
      const box = (await timeline.chart(2).boundingBox())!;
      await page.mouse.move(box.x + 250, box.y + 20);
      await page.mouse.down();
      await page.mouse.move(box.x + 450, box.y + 20, { steps: 4 });
      await page.mouse.up();
      await expect(reset).toBeEnabled();
      await page.mouse.dblclick(box.x + 200, box.y + 20);
      await expect(reset).toBeDisabled();
      await timeline.curves.press('+');
      await expect(reset).toBeEnabled();
      await timeline.curves.press('0');
      await expect(reset).toBeDisabled();
    });

    await test.step('pause', async () => {
      await timeline.button('Pause').click();
      await timeline.button('Resume').click();
      await expect(timeline.button('Pause')).toBeVisible();
    });

    await test.step('save', async () => {
      const saved = async (name: string) => {
        const download = page.waitForEvent('download');
        await timeline.button(name).click();
        return readFile(await (await download).path());
      };
      expect((await saved('CSV')).toString()).toContain('utilization.gpu [%]');
      expect((await saved('PNG')).subarray(1, 4).toString()).toBe('PNG');
    });

    await test.step('in both themes', async () => {
      const brightness = () =>
        timeline.root
          .locator('canvas')
          .evaluate((canvas: HTMLCanvasElement) => {
            const { width, height } = canvas;
            const ctx = canvas.getContext('2d')!;
            const { data } = ctx.getImageData(0, 0, width, height);
            return data.reduce((sum, value) => sum + value, 0) / data.length;
          });
      await timeline.button('Pause').click();
      await expect.poll(brightness).toBeGreaterThan(200);
      await page.theme.setDarkTheme();
      await expect.poll(brightness).toBeLessThan(150);
      await timeline.expectAccessible();
    });

    await test.step('it is there again after a reload', async () => {
      await page.reload();
      await expect(timeline.chart(6)).toHaveAccessibleName(
        /temperature: 84 °C · memory: /
      );
      await page.theme.setLightTheme();
    });
  });

  test('it asks for samples while it can be seen, and only then', async ({
    page
  }) => {
    const asked: string[] = [];
    page.on('websocket', socket => {
      if (socket.url().includes('jupyter-dist/stream')) {
        socket.on('framesent', ({ payload }) => asked.push(`${payload}`));
      }
    });
    await page.reload();
    const timeline = new Timeline(page);
    await timeline.open();
    await expect
      .poll(() => asked.at(-1))
      .toBe('{"watch":["cells","gpus","jobs"]}');
    await page.evaluate(async () => {
      await window.jupyterapp.commands.execute('launcher:create');
    });
    await expect(timeline.root).toBeHidden();
    await expect.poll(() => asked.at(-1)).toBe('{"watch":["jobs"]}');
    await timeline.open();
    await expect
      .poll(() => asked.at(-1))
      .toBe('{"watch":["cells","gpus","jobs"]}');
  });

  test('a click on a cell leads to it', async ({ page, notebooks }) => {
    await notebooks.open('train.ipynb', ['1', UNTIL_TOLD]);
    await page.evaluate(async () => {
      await window.jupyterapp.commands.execute('jupyter-dist:start-pool', {
        ranks: 2
      });
    });
    const pool = async () => {
      const answer = await page.request.get('jupyter-dist/pools');
      const { pools } = await answer.json();
      return pools[0];
    };
    await expect.poll(async () => (await pool())?.state).toBe('RUNNING');
    const timeline = new Timeline(page);
    await notebooks.run(0);
    await notebooks.run(1);
    await timeline.open();

    await test.step('while it runs, and after', async () => {
      await expect(
        timeline.cell(
          /^Cell \[2\] has been running on ranks 0–1 since .*train.ipynb/
        )
      ).toBeVisible();
      await notebooks.write('go', '');
      const chip = timeline.cell(RAN);
      await expect(chip).toBeVisible();
      await timeline.root
        .getByLabel('Range', { exact: true })
        .selectOption('last 5 minutes');
      await timeline.expectAccessible();
    });

    await test.step('alone with the GPUs of its pool, in one chart', async () => {
      await timeline.root
        .getByLabel('GPUs', { exact: true })
        .selectOption('All GPUs');
      await expect(timeline.chart(7)).toBeVisible();
      await timeline.root
        .getByLabel('GPUs', { exact: true })
        .selectOption('This pool');
      await expect(timeline.chart(7)).toHaveCount(0);
      await expect(timeline.chart(1)).toBeVisible();
      await timeline.button('Overlay').click();
      await timeline.button('Fit').click();
      await expect(timeline.button('Full range')).toBeVisible();
      await timeline.expectAccessible();
      await timeline.button('Rows').click();
    });

    await test.step('in the table', async () => {
      const download = page.waitForEvent('download');
      await timeline.button('CSV').click();
      const table = await readFile(await (await download).path(), 'utf-8');
      const [titles, ...lines] = table.trim().split('\n');
      expect(titles).toMatch(/^timestamp,gpu,uuid,ranks,cell,utilization.gpu/);
      expect(lines.some(line => /^[^,]+,1,GPU-[^,]+,1,2,/.test(line))).toBe(
        true
      );
    });

    const marked = page
      .locator('.jp-NotebookPanel:visible .jp-mod-active')
      .filter({ hasText: 'time.sleep' });
    const jump = async () => {
      // A notebook that comes to the front late may hide the timeline, with its first cell active.
      await expect(async () => {
        await timeline.open();
        await timeline.cell(RAN).press('Enter', { timeout: 5000 });
        await expect(marked).toBeVisible({ timeout: 5000 });
      }).toPass();
    };
    await test.step('to the cell, also if the notebook is closed', async () => {
      await page.evaluate(async () => {
        const { shell } = window.jupyterapp;
        for (const widget of shell.widgets('main')) {
          if (widget.title.label === 'train.ipynb') {
            await (widget as NotebookPanel).context.save();
            widget.close();
          }
        }
      });
      await expect(page.getByRole('tab', { name: 'train' })).toHaveCount(0);
      await jump();
    });

    await test.step('after the page was loaded again', async () => {
      await page.reload();
      await jump();
    });

    await test.step('after a restart of the kernel, which counts anew', async () => {
      const { kernel_id } = await pool();
      await page.request.post(`api/kernels/${kernel_id}/restart`);
      // Another cell is number 2 then.
      await notebooks.run(0);
      await notebooks.run(0);
      await jump();
    });

    await test.step('it says so if the cell is gone', async () => {
      await page.evaluate(async () => {
        await window.jupyterapp.commands.execute('notebook:delete-cell');
      });
      await expect(async () => {
        await timeline.open();
        await timeline.cell(RAN).click({ timeout: 5000 });
        await expect(
          page.getByText('Cell [2] is not in train.ipynb any more.').first()
        ).toBeVisible({ timeout: 5000 });
      }).toPass();
    });
    await page.request.delete(`jupyter-dist/pools/${(await pool()).id}`);
  });

  test('what ranks did in a profiled cell', async ({
    page,
    panel,
    notebooks
  }) => {
    await notebooks.open('slow.ipynb', [
      '%%distributed --profile\nimport time\nfor _ in range(3):\n    time.sleep(rank)\n    dist.all_reduce(torch.ones(3))'
    ]);
    await panel.start(2);
    await panel.expectRunning(2);
    await notebooks.run(0);
    const timeline = new Timeline(page);
    await timeline.open();
    await timeline.root
      .getByLabel('Range', { exact: true })
      .selectOption('last 5 minutes');
    await expect(
      timeline.root.getByText('Profiled cells, most of the time:')
    ).toBeVisible();
    const waited =
      /rank 0 .*profiled: compute .* waiting for other ranks [1-9]\d*\.\d\d s$/;
    await expect(
      timeline.curves.getByRole('img', { name: waited })
    ).toBeVisible();
    await timeline.expectAccessible();
  });
});

test('a machine without GPUs', async ({ page }) => {
  const timeline = new Timeline(page);
  await timeline.open();
  await expect(
    timeline.root.getByRole('heading', { name: 'No GPUs to show' })
  ).toBeVisible();
  await timeline.expectAccessible();
});
