import type { KernelSpec, ServiceManager } from '@jupyterlab/services';

import { LOAD } from '../../model/tokens';
import { trans } from '../../model/trans';

interface ICell {
  type: 'markdown' | 'code';
  source: string;
}

const START = `${LOAD}
%dist_init`;

const HELLO = `%%distributed
print(f"Hello from rank {rank} of {world_size} on {device}")`;

const SUM = `%%distributed
total = torch.tensor(rank, device=device)
dist.all_reduce(total)
total.item()`;

/** These cells start ranks and print a greeting from each. */
export function firstCells(): ICell[] {
  const title = trans.__('Distributed notebook');
  const words = trans.__(
    'Each rank is a separate Python process. A cell that begins with %1 runs on all of them.',
    '`%%distributed`'
  );
  return [
    { type: 'markdown', source: `# ${title}\n\n${words}` },
    { type: 'code', source: START },
    { type: 'code', source: HELLO },
    { type: 'code', source: SUM }
  ];
}

export function makeContent(
  cells: readonly ICell[],
  kernel: KernelSpec.ISpecModel | null
): object {
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: kernel
      ? {
          kernelspec: {
            name: kernel.name,
            display_name: kernel.display_name,
            language: kernel.language
          }
        }
      : {},
    cells: cells.map(({ type, source }, index) => ({
      id: `cell-${index + 1}`,
      cell_type: type,
      metadata: {},
      source,
      ...(type === 'code' && { execution_count: null, outputs: [] })
    }))
  };
}

/** The default kernel if it is Python, or else the first Python kernel. */
export function pythonKernel(
  specs: KernelSpec.ISpecModels | null
): KernelSpec.ISpecModel | null {
  const all = Object.values(specs?.kernelspecs ?? {});
  const python = all.filter(spec => spec?.language.toLowerCase() === 'python');
  return (
    python.find(spec => spec?.name === specs?.default) ?? python[0] ?? null
  );
}

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
