import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IOutput } from '@jupyterlab/nbformat';
import type { KernelMessage } from '@jupyterlab/services';

export interface IShown {
  request: string;
  cell_id: string;
  code: string;
  execution_count: number | null;
  outputs: IOutput[];
  /** By the id of a display, its indices among the outputs. */
  displays: Record<string, number[]>;
  /** Whether the next output replaces these. */
  cleared: boolean;
  /** Seconds since the cell has ended; null while it runs. */
  age: number | null;
}

interface IDisplayContent {
  data: object;
  metadata: object;
  transient?: { display_id?: string };
}

/** A cell that ran before the page was loaded: it shows its messages as JupyterLab would. */
export class RunningCell {
  constructor(
    private readonly _cell: ICodeCellModel,
    { displays, cleared }: IShown
  ) {
    this._displays = new Map(Object.entries(displays));
    if (cleared) {
      _cell.outputs.clear(true);
    }
    _cell.executionState = 'running';
  }

  /** Take one of its messages on iopub; answers whether the cell has ended. */
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
        outputs.add({ output_type, ...output } as IOutput);
        const id = transient?.display_id;
        if (id) {
          const places = this._displays.get(id) ?? [];
          this._displays.set(id, [...places, outputs.length - 1]);
        }
        break;
      }
      case 'update_display_data': {
        const { data, metadata, transient } = content as IDisplayContent;
        const places = this._displays.get(transient?.display_id ?? '') ?? [];
        const output = { output_type: 'display_data', data, metadata };
        places.forEach(place => outputs.set(place, output as IOutput));
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

  private readonly _displays: Map<string, number[]>;
}
