import type { KernelMessage } from '@jupyterlab/services';

import type { ICodeCell, IShown } from './replay';

/**
 * A cell that ran already when the page was loaded: it shows what its messages say, as JupyterLab does
 * for cells that it has started itself.
 */
export class RunningCell {
  constructor(
    private readonly _cell: ICodeCell,
    { displays, cleared }: IShown
  ) {
    this._displays = new Map(Object.entries(displays));
    if (cleared) {
      _cell.outputs.clear(true);
    }
    _cell.executionState = 'running';
  }

  /** Take a message of the cell on iopub; answers whether the cell has ended. */
  take({ header, content }: KernelMessage.IIOPubMessage): boolean {
    const { outputs } = this._cell;
    const { msg_type: output_type } = header;
    switch (output_type) {
      case 'stream':
      case 'error':
        outputs.add({ output_type, ...content });
        break;
      case 'display_data':
      case 'execute_result': {
        const { transient, ...output } = content as IDisplayContent;
        outputs.add({ output_type, ...output });
        this._add(transient?.display_id, outputs.length - 1);
        break;
      }
      case 'update_display_data': {
        const { data, metadata, transient } = content as IDisplayContent;
        const places = this._displays.get(transient?.display_id ?? '') ?? [];
        const output = { output_type: 'display_data', data, metadata };
        places.forEach(place => outputs.set(place, output));
        break;
      }
      case 'clear_output':
        outputs.clear((content as { wait: boolean }).wait);
        this._displays.clear();
        break;
      case 'status':
        return (
          (content as { execution_state: string }).execution_state === 'idle'
        );
    }
    return false;
  }

  end(): void {
    this._cell.executionState = 'idle';
  }

  private _add(id: string | undefined, place: number): void {
    if (id) {
      this._displays.set(id, [...(this._displays.get(id) ?? []), place]);
    }
  }

  private readonly _displays: Map<string, number[]>;
}

interface IDisplayContent {
  data: object;
  metadata: object;
  transient?: { display_id?: string };
}
