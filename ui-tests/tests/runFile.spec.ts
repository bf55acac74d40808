import { expect, test } from './support';

const SCRIPT = `import torch.distributed as dist

if __name__ == "__main__":
    print(f"I am {dist.get_rank()}")
`;

test('a script of the file browser runs on the ranks of the notebook', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.write('my train.py', SCRIPT);
  await notebooks.open('one.ipynb', ['']);
  await panel.start(2);
  await panel.expectRunning(2);

  await page.sidebar.openTab('filebrowser');
  await page
    .locator('.jp-DirListing-item', { hasText: 'my train.py' })
    .click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Run on Ranks' }).click();
  const cell = page.locator('.jp-NotebookPanel:visible .jp-CodeCell').last();
  // Behind %load_ext and %dist_init, if the kernel does not use its pool yet.
  await expect(cell.locator('.cm-content')).toContainText(
    '%dist_run "my train.py"'
  );
  await expect(cell.locator('.jp-Cell-outputArea')).toContainText(
    /I am 0[^]*I am 1/
  );
});
