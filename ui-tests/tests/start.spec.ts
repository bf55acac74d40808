import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Locator } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expect, test } from './support';
import type { Panel } from './support';

// Eight pretend GPUs; another process is on GPU 6.
test.use({ baseURL: FAKE_GPUS_URL });

const LOAD = '%load_ext jupyter_dist_server\n';

function chip(panel: Panel, gpu: number): Locator {
  return panel.form.getByRole('checkbox', { name: `GPU ${gpu}`, exact: true });
}

function card(panel: Panel, gpu: number): Locator {
  return panel.gpus.getByRole('listitem', { name: `GPU ${gpu}`, exact: true });
}

/** The cells of the current notebook. */
function cells(page: IJupyterLabPageFixture): Promise<string[]> {
  return page.evaluate(() => {
    const { content } = window.jupyterapp.shell.currentWidget as NotebookPanel;
    return content.widgets.map(({ model }) => model.sharedModel.getSource());
  });
}

/** Wait until JupyterLab keeps this with its layout. */
async function kept(page: IJupyterLabPageFixture, text: string): Promise<void> {
  await page.waitForResponse(response => {
    const request = response.request();
    return (
      request.method() === 'PUT' &&
      request.url().includes('api/workspaces') &&
      Boolean(request.postData()?.includes(text))
    );
  });
}

test('a pool is started as the form says, and by the code that it writes', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('one.ipynb', ['']);

  await test.step('GPUs are picked with the keyboard', async () => {
    await expect(chip(panel, 2)).toHaveAccessibleDescription(/80\.0 GiB free/);
    await expect(chip(panel, 6)).toHaveAccessibleDescription(/python, \w+/);
    await expect(chip(panel, 6)).toBeDisabled();
    await expect(panel.stepper).toHaveValue('7');
    for (const gpu of [2, 3, 4, 5]) {
      await chip(panel, gpu).focus();
      await page.keyboard.press('Space');
    }
    await expect(panel.stepper).toHaveValue('4');
    await panel.stepper.fill('5');
    await expect(panel.form).toContainText('they share 4 GPUs and use gloo');
    await panel.stepper.fill('4');
  });

  await test.step('what is wrong is said at the field, by us or the server', async () => {
    const more = panel.form.getByRole('button', { name: /^More options/ });
    await more.press('Enter');
    const limit = panel.form.getByRole('spinbutton', {
      name: 'Start timeout',
      exact: true
    });
    await limit.fill('0');
    await expect(limit).toHaveAccessibleDescription(/Enter a number above 0/);
    await expect(panel.button('Start')).toBeDisabled();
    await limit.fill('');
    const share = panel.form.getByRole('checkbox', { name: /^Share/ });
    const alone = panel.form.getByRole('checkbox', {
      name: 'One rank per GPU'
    });
    await share.check();
    await alone.check();
    await panel.button('Start').click();
    await expect(share).toHaveAccessibleDescription(/cannot both refuse/);
    await panel.expectRight();
    await share.uncheck();
    await expect(share).not.toHaveAccessibleDescription(/cannot both/);
    await alone.uncheck();
  });

  await test.step('the ranks sit where they should', async () => {
    await panel.stepper.press('Enter');
    await panel.expectRunning(4);
    for (const rank of [0, 1, 2, 3]) {
      await expect(panel.tile(rank)).toContainText(`GPU ${rank + 2}`);
    }
  });

  await test.step('another notebook is not offered those', async () => {
    await notebooks.open('two.ipynb', ['']);
    await expect(chip(panel, 3)).toBeDisabled();
    await expect(chip(panel, 3)).toHaveAccessibleDescription(/one\.ipynb/);
    await expect(chip(panel, 1)).toBeEnabled();
    await expect(panel.stepper).toHaveValue('3');
  });

  await test.step('the form is remembered, but no value of a variable', async () => {
    await chip(panel, 1).check();
    await panel.form.getByRole('button', { name: 'More options' }).click();
    await panel.form.getByRole('button', { name: 'Add variable' }).click();
    const sent: string[] = [];
    page.on('request', request => sent.push(request.postData() ?? ''));
    const isKept = kept(page, 'GREETING');
    await page.keyboard.type('GREETING');
    await page.keyboard.press('Tab');
    await page.keyboard.type('good day');
    await isKept;
    await page.reload();
    await expect(panel.root).toBeVisible();
    await notebooks.turnTo('two.ipynb');
    await expect(chip(panel, 1)).toBeChecked();
    await expect(panel.form).toContainText('More options (1 chosen)');
    await expect(panel.form).toContainText('Enter the value of “GREETING”');
    await panel.expectRight();
    expect(sent.join()).not.toContain('good day');
    await panel.form.getByLabel('Value of variable 1').fill('good day');
    await expect(panel.form).not.toContainText('Enter the value');
  });

  await test.step('its code starts the same', async () => {
    await panel.form.getByRole('button', { name: /^More options/ }).click();
    await panel.form
      .getByRole('checkbox', { name: 'Check collectives' })
      .check();
    await panel.button('Insert Code').click();
    await expect
      .poll(() => cells(page))
      .toEqual([
        '',
        `${LOAD}%dist_init -n 1 --gpu-ids 1 --check --env "GREETING=good day"`
      ]);
    const isFocused = () =>
      Boolean(document.activeElement?.closest('.jp-NotebookPanel'));
    await expect.poll(() => page.evaluate(isFocused)).toBe(true);
    await page.keyboard.press('Shift+Enter');
    await panel.expectRunning(1);
    await expect(panel.tile(0)).toContainText('GPU 1');
  });

  await test.step('GPUs and ranks are dragged into the notebook', async () => {
    const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').first();
    const drag = async (from: Locator, label: string) => {
      await from.getByText(label).hover();
      await page.mouse.down();
      await cell.hover();
      await expect(page.locator('.jp-dist-DragImage')).toHaveText(label);
      await page.mouse.up();
    };
    await drag(card(panel, 1), 'GPU 1');
    await expect.poll(async () => (await cells(page))[0]).toBe('%%rank [0]\n');
    const before = (await cells(page)).length;
    await drag(panel.tile(0), 'Rank 0');
    await expect.poll(async () => (await cells(page)).length).toBe(before + 1);
    expect((await cells(page))[0]).toBe('%%rank [0]\n');
  });

  await test.step('or put there from their menu', async () => {
    await panel.gpus.getByRole('button', { name: /^Show \d more/ }).click();
    await card(panel, 7)
      .getByRole('button', { name: 'Details of GPU 7' })
      .click({ button: 'right' });
    await page.getByRole('menuitem', { name: 'Insert Cell' }).click();
    await expect
      .poll(async () => (await cells(page))[1])
      .toBe(`${LOAD}%dist_init -n 1 --gpu-ids 7`);
  });
});
