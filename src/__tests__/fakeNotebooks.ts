import { Signal } from '@lumino/signaling';

import type { INotebookKernels } from '../model/notebook';

/** Where one notebook after the other is looked at. */
export class FakeNotebooks implements INotebookKernels {
  readonly ran: string[] = [];
  refusal: string | null = null;
  readonly tracker = {
    currentWidget: null as object | null,
    currentChanged: new Signal<object, unknown>({})
  };

  constructor() {
    this.open('train.ipynb', 'k1');
  }

  current: string | null = null;

  open(path: string, kernelId: string | null): void {
    this.current = kernelId;
    this.tracker.currentWidget = {
      sessionContext: {
        path,
        session: kernelId
          ? { id: `s${kernelId}`, kernel: { id: kernelId } }
          : null,
        specsManager: { specs: null },
        kernelChanged: new Signal({}),
        propertyChanged: new Signal({}),
        disposed: new Signal({})
      }
    };
    this.tracker.currentChanged.emit(this.tracker.currentWidget);
  }

  close(): void {
    this.current = this.tracker.currentWidget = null;
    this.tracker.currentChanged.emit(null);
  }

  runMagic(kernelId: string, line: string) {
    this.ran.push(`${kernelId} ${line}`);
    return Promise.resolve(this.refusal);
  }
}
