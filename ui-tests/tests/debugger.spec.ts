import { galata } from '@jupyterlab/galata';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { setBreakpoint, variable } from './debugging';
import { expect, test } from './support';

const START = '%load_ext jupyter_dist_server\n%dist_init -n';
const CELL = `\
%%distributed
def f(x):
    y = torch.ones(2) * x
    return y

f(rank + 5)
print("end of", rank)`;
// Nobody wants to wait for long here.
test.use({
  mockSettings: {
    ...galata.DEFAULT_SETTINGS,
    'jupyter-dist-server:plugin': { waitLimit: 1 }
  }
});

const HANGS = `\
%%distributed
done = []
while rank == 1 and not done:
    n = len(done)
dist.barrier()
print("end of", rank)`;

for (const count of [2, 8]) {
  test(`JupyterLab’s debugger stops ${count} ranks, shows the variables, and goes on`, async ({
    page,
    panel,
    notebooks
  }) => {
    await notebooks.open('debugger.ipynb', [`${START} ${count}`, CELL]);
    await notebooks.run(0);
    await panel.expectRunning(count);
    const ranks = [...Array(count).keys()];
    const cell = page.locator('.jp-NotebookPanel:visible .jp-Cell').nth(1);

    await test.step('a breakpoint in the gutter', async () => {
      await page.debugger.switchOn('debugger.ipynb');
      await setBreakpoint(cell, 4);
      await page.debugger.waitForBreakPoints();
    });

    await test.step('the cell stops there', async () => {
      await notebooks.run(1);
      await page.debugger.waitForCallStack();
      const stack = await page.debugger.getCallStackPanelLocator();
      await expect(stack).toContainText('f');
      await expect(stack).toContainText('4');
      const values = ranks.map(rank => `${rank + 5}, ${rank + 5}`).join('|');
      await expect(
        variable(page, 'y', `Tensor 2 float32 on cpu \\[(${values})\\]`)
      ).toBeVisible();
    });

    await test.step('the panel says where', async () => {
      for (const rank of ranks) {
        await expect(panel.tile(rank)).toContainText('stopped · In[2] line 4');
      }
      const shown = await variable(page, 'x', '').innerText();
      const other = shown.trim().endsWith('5') ? count - 1 : 0;
      await panel.tile(other).click({ button: 'right' });
      await page.getByRole('menuitem', { name: 'Debug' }).click();
      await expect(variable(page, 'x', `${5 + other}`)).toBeVisible();
    });

    await test.step('all go on', async () => {
      await page.getByRole('button', { name: 'Continue (F9)' }).click();
      for (const rank of ranks) {
        await expect(notebooks.output(1)).toContainText(`end of ${rank}`);
      }
      await expect(panel.tiles.filter({ hasText: 'idle' })).toHaveCount(count);
    });
  });
}

test('a cell that hangs is looked into', async ({ page, panel, notebooks }) => {
  await notebooks.open('hangs.ipynb', [`${START} 2`, HANGS]);
  await notebooks.run(0);
  await panel.expectRunning(2);
  await notebooks.run(1);
  await expect(panel.tiles.filter({ hasText: 'idle' })).toHaveCount(0);
  // What is missing is said, and the debugger is one click away; the bug button would do, too.
  await panel.root.getByRole('button', { name: 'Debug rank 1' }).click();
  await expect(variable(page, 'n', '0')).toBeVisible();
  await page.evaluate(async () => {
    const { shell } = window.jupyterapp;
    const { sessionContext } = shell.currentWidget as NotebookPanel;
    const kernel = sessionContext.session!.kernel!;
    const ask = async (command: string, args: Record<string, unknown>) =>
      (
        await kernel.requestDebug({
          ...{ type: 'request', seq: 999, command },
          arguments: args
        } as never).done
      ).content.body;
    const { stackFrames } = await ask('stackTrace', { threadId: 1 });
    await ask('evaluate', {
      ...{ expression: 'done.append(1)', context: 'repl' },
      frameId: stackFrames[0].id
    });
  });
  await page.getByRole('button', { name: 'Continue (F9)' }).click();
  await expect(notebooks.output(1)).toContainText('end of 1');
});
