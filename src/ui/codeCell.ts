import type { ICodeCell } from '@jupyterlab/nbformat';

/** A code cell that has not run yet. */
export function makeCodeCell(source: string): ICodeCell {
  return {
    cell_type: 'code',
    source,
    // The user put it there, and it has no output that could do harm.
    metadata: { trusted: true },
    execution_count: null,
    outputs: []
  };
}
