import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';

import { isSame } from '../ui/useModel';
import type { IShown } from './runningCell';

/** Files of an older format have no ids; then the source identifies the cell. */
export function find(
  cells: Iterable<ICellModel>,
  shown: IShown
): ICodeCellModel | undefined {
  const all = [...cells].filter(
    (cell): cell is ICodeCellModel => cell.type === 'code'
  );
  return (
    all.find(({ id }) => id === shown.cell_id) ??
    all.find(({ sharedModel }) => sharedModel.source === shown.code)
  );
}

export function restore(code: ICodeCellModel, shown: IShown): void {
  const { outputs } = code;
  if (shown.dropped) {
    const now = outputs.toJSON();
    const [said] = shown.outputs;
    if (!now.some(output => isSame(output, said))) {
      outputs.add(said);
    }
  } else if (!isSame(outputs.toJSON(), shown.outputs)) {
    // Setting the same outputs again would mark the notebook as changed.
    outputs.fromJSON(shown.outputs);
  }
  if (code.executionCount !== shown.execution_count) {
    code.executionCount = shown.execution_count;
  }
  if (code.executionState === 'running') {
    // The page that ran it is gone.
    code.executionState = 'idle';
  }
}
