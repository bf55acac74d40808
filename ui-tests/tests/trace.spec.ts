import { expectAccessible } from './accessibility';
import { expect, test } from './support';

const PERFETTO = 'https://ui.perfetto.dev/';

/** Answers as Perfetto does, and shows what it was handed. */
const VIEWER = `<!doctype html><title>Viewer</title><output></output><script>
addEventListener('message', async ({ data, source }) => {
  if (data === 'PING') {
    source.postMessage('PONG', '*');
    return;
  }
  const { buffer, title } = data.perfetto;
  const stream = new Blob([buffer]).stream();
  const text = new Response(stream.pipeThrough(new DecompressionStream('gzip')));
  const { traceEvents } = await text.json();
  const names = traceEvents.filter(({ name }) => name === 'process_name');
  document.querySelector('output').textContent =
    title + ': ' + names.map(({ args }) => args.name).join(', ');
});
</script>`;

test('the trace of a profiled cell opens in Perfetto', async ({
  page,
  panel,
  notebooks
}) => {
  await notebooks.open('slow.ipynb', [
    '%%distributed --profile\ndist.all_reduce(torch.ones(3))'
  ]);
  await panel.start(2);
  await panel.expectRunning(2);
  await page.notebook.runCell(0);
  const output = page.locator('.jp-NotebookPanel:visible .jp-Cell-outputArea');
  const button = output.getByRole('button', { name: 'Open in Perfetto' });
  await expect(button).toBeVisible();
  await expectAccessible(page, ['.jp-dist-Trace']);
  const name = (await output.locator('.jp-dist-Trace a').innerText()).trim();
  expect(name).toMatch(/^profile-cell-\d+(-\d+)?\.json\.gz$/);

  const expectOpened = async (open: () => Promise<void>) => {
    const popup = page.context().waitForEvent('page');
    await open();
    const viewer = await popup;
    await expect(viewer.locator('output')).toHaveText(
      `${name}: rank 0, rank 1`
    );
    await viewer.close();
  };
  await page
    .context()
    .route(`${PERFETTO}**`, route =>
      route.fulfill({ contentType: 'text/html', body: VIEWER })
    );
  await expectOpened(() => button.click());

  await test.step('from the file browser', async () => {
    await page.sidebar.openTab('filebrowser');
    await page
      .locator('.jp-DirListing-item', { hasText: name })
      .click({ button: 'right' });
    const item = page.getByRole('menuitem', { name: 'Open in Perfetto' });
    await expectOpened(() => item.click());
  });

  await test.step('without internet access', async () => {
    await page.context().unroute(`${PERFETTO}**`);
    await page.context().route(`${PERFETTO}**`, route => route.abort());
    const download = page.waitForEvent('download', { timeout: 90_000 });
    await button.click();
    expect((await download).suggestedFilename()).toBe(name);
    await expect(
      page.getByText(`did not respond. ${name} was downloaded`)
    ).toBeVisible();
  });
});
