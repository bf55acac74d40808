import type { Locator } from '@playwright/test';
import { chmod } from 'fs/promises';

import { FAKE_GPUS_URL } from '../playwright.config';
import { expectAccessibleInBothThemes } from './accessibility';
import { LOOK, show } from './pictures';
import { cancelJobs, expect, test } from './support';

// Eight pretend GPUs; another process is on GPU 6, so that seven can be given to jobs.
test.use({ ...LOOK, baseURL: FAKE_GPUS_URL });

/** The panel's least width, at which JupyterLab opens it. */
const NARROW = 250;

test.afterEach(({ page }) => cancelJobs(page));

test('jobs are submitted by a dialog, also from files', async ({
  page,
  panel,
  notebooks,
  tmpPath
}) => {
  const section = panel.root.getByRole('region', { name: 'Queue Section' });
  const dialog = page.getByRole('dialog');
  const field = (name: string) =>
    dialog.getByRole('textbox', { name, exact: true });
  const press = (name: string, inside: Locator = dialog) =>
    inside.getByRole('button', { name, exact: true }).click();
  const outlook = dialog.locator('.jp-dist-Outlook');
  const rows = section.getByRole('list', { name: 'Running and waiting' });
  await page.sidebar.setWidth(NARROW, 'left');
  // Folds the pool and the GPUs away, and opens the queue.
  for (const index of [0, 1, 3]) {
    await panel.root.locator('.jp-AccordionPanel-title').nth(index).click();
  }

  await test.step('has the focus in its first field, and leaves it where it is put', async () => {
    // JupyterLab gives a dialog the focus when the browser is idle: here that is later.
    const late = await page.evaluateHandle(() => {
      const { requestIdleCallback } = window;
      const callbacks: IdleRequestCallback[] = [];
      window.requestIdleCallback = callback => callbacks.push(callback);
      return { callbacks, requestIdleCallback };
    });
    await press('Submit a job…', section);
    await expect(field('Command')).toBeFocused();
    await field('Time limit').focus();
    await late.evaluate(({ callbacks, requestIdleCallback }) => {
      window.requestIdleCallback = requestIdleCallback;
      callbacks.forEach(callback => requestIdleCallback(callback));
      return new Promise(resolve => requestIdleCallback(resolve));
    });
    await expect(field('Time limit')).toBeFocused();
  });

  await test.step('says at once what is wrong', async () => {
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
    await expect(outlook).toContainText('{lr}, {seed} are passed as they are');
    await press('Add parameter');
    await expect(field('Name of parameter 1')).toBeFocused();
    await field('Name of parameter 1').fill('lr');
    await field('Values of parameter 1').fill('0.1, 0.01');
    await press('Add parameter');
    await field('Name of parameter 2').fill('seed');
    await field('Values of parameter 2').fill('1, 2');
    await expect(outlook).toContainText('4 jobs. The first starts now');
    await expect(outlook).toContainText('echo 0.1 1');
    await page.theme.setLightTheme();
    await show(dialog, 'submit');
    await expectAccessibleInBothThemes(page, ['.jp-dist-SubmitDialog']);
    await page.theme.setLightTheme();
    await press('Remove parameter lr');
    await press('Remove parameter seed');
    // A triangle is part of its name.
    await dialog.getByRole('button', { name: 'More options' }).click();
    await expect(field('Comment')).not.toBeInViewport();
    await expect(outlook).toBeInViewport({ ratio: 1 });
    await expectAccessibleInBothThemes(page, ['.jp-dist-SubmitDialog']);
    await page.theme.setLightTheme();
    await field('Name').fill('pretrain');
    await field('Command').fill('sleep 600');
    await expect(outlook).toContainText('Starts now on GPUs 0, 1, 2, 3, 4');
    await field('Command').press('Enter');
    await expect(dialog).toBeHidden();
    await expect(rows).toContainText(/pretrain.*GPUs 0–4/);
  });

  await test.step('takes certain GPUs, a time to begin and jobs to wait for', async () => {
    await press('Submit a job…', section);
    await field('Command').fill('sleep 600');
    await dialog.getByRole('button', { name: 'More options' }).click();
    const chips = dialog.getByRole('group', { name: 'Only these GPUs' });
    await chips.getByRole('checkbox', { name: 'GPU 5', exact: true }).check();
    await field('GPUs').fill('1');
    await expect(outlook).toContainText('Starts now on GPU 5');
    await field('Memory').fill('much');
    await expect(field('Memory')).toHaveAttribute('aria-invalid', 'true');
    await field('Memory').fill('64M');
    await field('After jobs').fill('afterok:9999');
    await expect(dialog).toContainText('There is no job 9999.');
    await field('After jobs').fill('');
    await field('Not before').fill('now+2hours');
    await expect(outlook).not.toContainText('Starts now');
    await expect(outlook).not.toContainText('Checking');
    const kernels = dialog.getByRole('combobox', { name: 'Kernel' });
    await expect(kernels.getByRole('option').first()).toBeAttached();
    await press('Cancel');
    await expect(dialog).toBeHidden();
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
});

test('the dialog opens before its form has come, and what it holds goes into the notebook as a command', async ({
  page,
  notebooks
}) => {
  const dialog = page.getByRole('dialog');
  const command = dialog.getByRole('textbox', { name: 'Command', exact: true });
  await notebooks.open('typed.ipynb', ['x = 1']);
  const cell = page.locator('.jp-Notebook .cm-content').first();
  await cell.click();
  let come = () => {};
  const late = new Promise<void>(resolve => (come = resolve));
  await page.route('**/submit-schema*', async route => {
    await late;
    await route.continue();
  });
  await page.evaluate(
    () => void window.jupyterapp.commands.execute('jupyter-dist:submit-job')
  );
  await expect(dialog.getByRole('status')).toHaveText('Loading the form…');
  await page.keyboard.type('sleep');
  come();
  await expect(command).toBeFocused();
  await page.keyboard.type('true');
  await expect(command).toHaveValue('true');
  await dialog.getByRole('button', { name: 'Insert as Command' }).click();
  await expect(dialog).toBeHidden();
  await expect(cell).toHaveText('x = 1');
  const inserted = page.locator('.jp-Notebook .cm-content').last();
  await expect(inserted).toContainText(/%%bash\s*jdist submit .*true/);
});

test('a notebook runs as a job from its toolbar and the file browser, with its parameters', async ({
  page,
  notebooks,
  tmpPath
}) => {
  const dialog = page.getByRole('dialog');
  const field = (name: string) =>
    dialog.getByRole('textbox', { name, exact: true });
  const expectNotebook = async () => {
    await expect(field('Notebook')).toHaveValue(`${tmpPath}/fit.ipynb`);
    await expect(field('Name of parameter 1')).toHaveValue('lr');
    await expect(field('Values of parameter 1')).toHaveValue('0.1');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await expect(dialog).toBeHidden();
  };
  const cell = {
    ...{ id: 'cell-0', cell_type: 'code', source: 'lr = 0.1' },
    ...{ metadata: { tags: ['parameters'] }, outputs: [] },
    execution_count: null
  };
  const kernelspec = { name: 'python3', display_name: 'Python 3' };
  await notebooks.write(
    'fit.ipynb',
    JSON.stringify({
      ...{ nbformat: 4, nbformat_minor: 5, metadata: { kernelspec } },
      cells: [cell]
    })
  );
  await notebooks.write('train.py', '');
  await page.evaluate(async path => {
    const { commands } = window.jupyterapp;
    const panel = await commands.execute('docmanager:open', { path });
    await panel.sessionContext.ready;
  }, `${tmpPath}/fit.ipynb`);

  await page
    .locator('.jp-NotebookPanel:visible')
    .getByRole('button', { name: /^Ranks: / })
    .click();
  await page.getByRole('menuitem', { name: /^Run as Job on \d GPU/ }).click();
  await expectNotebook();

  await page.sidebar.openTab('filebrowser');
  const choose = async (name: string) => {
    await page
      .locator('.jp-DirListing-item', { hasText: name })
      .click({ button: 'right' });
    await page
      .getByRole('menuitem', { name: 'Run as Job…', exact: true })
      .click();
  };
  await choose('fit.ipynb');
  await expectNotebook();
  await choose('train.py');
  await expect(field('Command')).toHaveValue('python train.py');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

test('a job has the cores, the environments and the ranks that the dialog asks for', async ({
  page,
  panel,
  notebooks
}) => {
  const dialog = page.getByRole('dialog');
  const fill = (name: string, text: string) =>
    dialog.getByRole('textbox', { name, exact: true }).fill(text);
  const names = ['LOCAL_RANK', 'WORLD_SIZE', 'OF_CONDA', 'OF_VENV'];
  const script = await notebooks.write(
    'env/train.py',
    `import os\nprint(*[os.environ[name] for name in ${JSON.stringify(names)}])`
  );
  const folder = script.slice(0, script.lastIndexOf('/'));
  await notebooks.write('env/mine/bin/activate', 'export OF_VENV=mine');
  const conda = await notebooks.write(
    'env/bin/conda',
    `#!/bin/sh\necho 'conda() { export OF_CONDA="$2"; }'`
  );
  await chmod(conda, 0o755);
  await expect(panel.root).toBeVisible();
  await page.evaluate(
    () => void window.jupyterapp.commands.execute('jupyter-dist:submit-job')
  );
  await fill('Command', 'train.py');
  await fill('Folder', folder);
  await fill('GPUs', '2');
  await dialog.getByRole('button', { name: 'More options' }).click();
  await fill('Name', 'environments');
  await fill('CPU cores', '4096');
  await expect(dialog).toContainText('The job needs 4096 cores');
  await fill('CPU cores', '1');
  await dialog.getByRole('checkbox', { name: 'Start by torchrun' }).check();
  await fill('Conda environment', 'theirs');
  await fill('Virtual environment', `${folder}/mine`);
  await fill('Variables', `PATH=${folder}/bin:${process.env.PATH}`);
  await expect(dialog.locator('.jp-dist-Outlook')).toContainText(
    'Starts now on GPUs'
  );
  await dialog.getByRole('button', { name: 'Submit', exact: true }).click();
  await expect(dialog).toBeHidden();

  const answer = await page.request.get('jupyter-dist/jobs');
  const { jobs } = await answer.json();
  const { label, cpus } = jobs.find(
    ({ name }: { name: string }) => name === 'environments'
  );
  expect(cpus).toBe(1);
  await page.evaluate(
    job => window.jupyterapp.commands.execute('jupyter-dist:open-job', { job }),
    label
  );
  const log = page.getByRole('main').getByRole('log');
  for (const rank of [0, 1]) {
    await expect(log).toContainText(`${rank} 2 theirs mine`);
  }
});
