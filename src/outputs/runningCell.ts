import type { ICodeCellModel } from '@jupyterlab/cells';
import type { IOutput } from '@jupyterlab/nbformat';
import type { KernelMessage } from '@jupyterlab/services';

import type { IQuestion } from './followedInput';

export interface IShown {
  request: string;
  /** The page that ran it, and when. */
  session: string;
  sent: string;
  cell_id: string;
  code: string;
  execution_count: number | null;
  outputs: IOutput[];
  /** By the id of a display, its indices among the outputs. */
  displays: Record<string, number[]>;
  /** Whether the next output replaces these. */
  cleared: boolean;
  running: boolean;
  /** Whether there was more, which is not kept. */
  cut: boolean;
  /** Whether the outputs are gone, and only say so. */
  dropped: boolean;
  /** Messages that are among the outputs, and may come still. */
  last: string[];
  /** What it asks its user. */
  question: IQuestion | null;
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
    { displays, cleared, last }: IShown
  ) {
    this._last = last;
    this._displays = new Map(Object.entries(displays));
    if (cleared) {
      _cell.outputs.clear(true);
    }
    _cell.executionState = 'running';
  }

  /** Take one of its messages on iopub; answers whether the cell has ended. */
  take({ header, content }: KernelMessage.IIOPubMessage): boolean {
    const { outputs } = this._cell;
    const { msg_type: output_type, msg_id } = header;
    if (this._last.includes(msg_id)) {
      return false;
    }
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

  /** Take what its user has answered. */
  answered(text: string): void {
    this._cell.outputs.add({ output_type: 'stream', name: 'stdin', text });
  }

  end(): void {
    this._cell.executionState = 'idle';
  }

  private readonly _last: string[];
  private readonly _displays: Map<string, number[]>;
}
