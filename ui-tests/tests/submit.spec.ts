import type { Locator } from '@playwright/test';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { draw, LOOK } from './pictures';
import { expect, test } from './support';

// Eight pretend GPUs; another process is on GPU 6, so that seven can be given to jobs.
test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

/** The panel's least width, at which JupyterLab opens it. */
const NARROW = 250;

test('jobs are submitted by a dialog, from notebooks and files, and put in order', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  test.setTimeout(240_000);
  const section = panel.root.getByRole('region', { name: 'Queue Section' });
  const dialog = page.getByRole('dialog');
  const field = (name: string) =>
    dialog.getByRole('textbox', { name, exact: true });
  const press = (name: string, inside: Locator = dialog) =>
    inside.getByRole('button', { name, exact: true }).click();
  const outlook = dialog.locator('.jp-dist-Outlook');
  const rows = section.getByRole('list', { name: 'Running and waiting' });
  const names = async () =>
    (await rows.getByRole('listitem').all()).map(row =>
      row.getAttribute('aria-label')
    );
  const order = async () =>
    (await Promise.all(await names())).map(name => name?.split(' ')[1]);
  const cancelAll = async () => {
    const answer = await page.request.get('jupyter-dist/jobs?states=R,PD');
    for (const { label } of (await answer.json()).jobs) {
      await page.request.delete(`jupyter-dist/jobs/${label}?now=1`);
    }
  };
  // An earlier try may have left some.
  await cancelAll();
  await page.sidebar.setWidth(NARROW, 'left');
  // Folds the pool and the GPUs away, and opens the queue.
  for (const index of [0, 1, 3]) {
    await panel.root.locator('.jp-AccordionPanel-title').nth(index).click();
  }

  await test.step('says at once what is wrong', async () => {
    await press('Submit a job…', section);
    await field('Command').fill('sleep 600');
    await expect(outlook).toContainText('Starts now');
    await field('Time limit').fill('soon');
    await expect(dialog).toContainText('“soon” is not a time limit.');
    await field('GPUs').fill('many');
    await expect(dialog).toContainText('This is a whole number, such as 2.');
    await expect(field('GPUs')).toHaveAttribute('aria-invalid', 'true');
    await field('GPUs').fill('5');
    await field('Time limit').fill('60');
    await expect(outlook).toContainText('Starts now on GPUs 0, 1, 2, 3, 4');
  });

  await test.step('shows the jobs of a sweep', async () => {
    await field('Command').fill('echo {lr} {seed}');
    await press('Add parameter');
    await field('Name of parameter 1').fill('lr');
    await field('Values of parameter 1').fill('0.1, 0.01');
    await press('Add parameter');
    await field('Name of parameter 2').fill('seed');
    await field('Values of parameter 2').fill('1, 2');
    await expect(outlook).toContainText('4 jobs: Starts now');
    await expect(outlook).toContainText('echo 0.1 1');
    await page.theme.setLightTheme();
    await draw(page, 'submit');
    await expectAccessibleInBothThemes(page, ['.jp-dist-SubmitDialog']);
    await page.theme.setLightTheme();
    await press('Remove parameter lr');
    await press('Remove parameter seed');
    // A triangle is part of its name.
    await dialog.getByRole('button', { name: 'More options' }).click();
    await expectAccessibleInBothThemes(page, ['.jp-dist-SubmitDialog']);
    await page.theme.setLightTheme();
    await field('Name').fill('pretrain');
    await field('Command').fill('sleep 600');
    await expect(outlook).toContainText('Starts now on GPUs 0, 1, 2, 3, 4');
    await field('Command').press('Enter');
    await expect(dialog).toBeHidden();
    await expect(rows).toContainText(/pretrain.*GPUs 0–4/);
  });

  const path = await notebooks.write('train.sh', '#!/bin/bash\nsleep 600\n');
  await test.step('runs a file of the file browser', async () => {
    await page.sidebar.openTab('filebrowser');
    await page
      .locator('.jp-DirListing-item', { hasText: 'train.sh' })
      .click({ button: 'right' });
    await page
      .getByRole('menuitem', { name: 'Run as Job…', exact: true })
      .click();
    await expect(field('Command')).toHaveValue('train.sh');
    await expect(field('Folder')).toHaveValue(tmpPath);
    await field('GPUs').fill('4');
    await expect(outlook).toContainText(/#1 in line · .*\d\d:\d\d/);
    await press('Submit');
    await expect(dialog).toBeHidden();
    expect(path).toContain('train.sh');
  });

  await test.step('runs the notebook with its parameters, or says how', async () => {
    await notebooks.open('fit.ipynb', ['lr = 0.1  # the rate\nname = "a"']);
    await page.evaluate(() => {
      const { content } = window.jupyterapp.shell.currentWidget as never as {
        content: {
          widgets: { model: { setMetadata(k: string, v: unknown): void } }[];
        };
      };
      content.widgets[0].model.setMetadata('tags', ['parameters']);
    });
    await page
      .locator('.jp-NotebookPanel:visible .jp-dist-RanksButton')
      .click();
    await page
      .getByRole('menuitem', { name: /Run as Job on \d GPUs…/ })
      .click();
    await expect(field('Notebook')).toHaveValue(`${tmpPath}/fit.ipynb`);
    await expect(field('Name of parameter 1')).toHaveValue('lr');
    await expect(field('Values of parameter 1')).toHaveValue('0.1');
    await expect(field('Values of parameter 2')).toHaveValue('"a"');
    await field('GPUs').fill('1');
    await press('Insert as Command');
    await expect(dialog).toBeHidden();
    await expect(
      page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(1)
    ).toContainText(
      `jdist notebook --gpus 1 -P lr=0.1 -P 'name="a"' fit.ipynb`
    );
  });

  await test.step('are dragged to another place in line', async () => {
    await panel.open();
    const command = ['sleep', '600'];
    for (const name of ['first', 'second', 'third']) {
      const answer = await page.request.post('jupyter-dist/jobs', {
        data: { command, name, gpus: 7, chdir: '/tmp', output: '/dev/null' }
      });
      expect(answer.status()).toBe(201);
    }
    await expect
      .poll(order)
      .toEqual(['pretrain', 'train.sh', 'first', 'second', 'third']);
    const row = (name: string) =>
      rows.getByRole('listitem').filter({ hasText: name });
    await row('third').dragTo(row('first'));
    await expect
      .poll(order)
      .toEqual(['pretrain', 'train.sh', 'third', 'first', 'second']);
    await row('third')
      .getByRole('button', { name: /Menu of/ })
      .click();
    await page.getByRole('menuitem', { name: 'Move Down' }).click();
    await expect
      .poll(order)
      .toEqual(['pretrain', 'train.sh', 'first', 'third', 'second']);
    await cancelAll();
    await expect(section).toContainText(/Ended in the last 24 h/);
  });
});
