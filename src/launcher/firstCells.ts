import type { KernelSpec } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import { LOAD } from '../tokens';

const START = `${LOAD}
%dist_init`;

const HELLO = `%%distributed
print(f"Hello from rank {rank} of {world_size} on {device}")`;

const SUM = `%%distributed
total = torch.tensor(rank, device=device)
dist.all_reduce(total)
total.item()`;

/**
 * A notebook, as a file holds it, whose cells start ranks and greet from each.
 */
export function firstNotebook(
  kernel: KernelSpec.ISpecModel | null,
  trans: TranslationBundle
): object {
  const title = trans.__('Distributed notebook');
  const words = trans.__(
    'Each rank is a Python process of its own. A cell that begins with %1 runs on all of them.',
    '`%%distributed`'
  );
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
    cells: [
      {
        id: 'title',
        cell_type: 'markdown',
        metadata: {},
        source: `# ${title}\n\n${words}`
      },
      ...[START, HELLO, SUM].map((source, index) => ({
        id: `code-${index + 1}`,
        cell_type: 'code',
        metadata: {},
        execution_count: null,
        outputs: [],
        source
      }))
    ]
  };
}

/** The kernel that new notebooks get, if it is Python; else the first that is. */
export function pythonKernel(
  specs: KernelSpec.ISpecModels | null
): KernelSpec.ISpecModel | null {
  const all = Object.values(specs?.kernelspecs ?? {});
  const python = all.filter(spec => spec?.language.toLowerCase() === 'python');
  return (
    python.find(spec => spec?.name === specs?.default) ?? python[0] ?? null
  );
}
