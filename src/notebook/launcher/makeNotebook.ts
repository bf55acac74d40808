import type { ServiceManager } from '@jupyterlab/services';

import { makeContent, pythonKernel } from './firstCells';
import type { ICell } from './firstCells';

/** Make a notebook with these cells in a folder; answers its path. */
export async function makeNotebook(
  { contents, kernelspecs }: ServiceManager.IManager,
  folder: string,
  cells: readonly ICell[]
): Promise<string> {
  await kernelspecs.ready;
  const kernel = pythonKernel(kernelspecs.specs);
  const { path } = await contents.newUntitled({
    path: folder,
    type: 'notebook'
  });
  await contents.save(path, {
    type: 'notebook',
    format: 'json',
    content: makeContent(cells, kernel)
  });
  return path;
}
