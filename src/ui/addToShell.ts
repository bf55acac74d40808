import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { SplitPanel } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';

/** Of the height of the page. With less than the least, there is nothing to see. */
const [SHARE, LEAST] = [0.4, 0.1];

/** What the areas had when they were last closed, which may have been chosen by the user. */
const shares = new WeakMap<Widget, number>();

/** Add a widget to the main area, or below or beside a notebook that has a page of its own. */
export function addToShell(
  shell: JupyterFrontEnd.IShell,
  labShell: ILabShell | null,
  widget: Widget
): void {
  // The main area of Notebook 7 has room for the notebook alone, and 7.2 has none below it.
  for (const area of labShell ? ['main'] : ['down', 'right']) {
    if (!widget.isAttached) {
      shell.add(widget, area, { type: 'Distributed' });
      if (area === 'down') {
        makeRoom(widget);
      }
    }
  }
}

/** The area below a notebook opens with no more than the height of its tabs, each time. */
function makeRoom(widget: Widget): void {
  // Around its tabs, which are around the widget.
  const split = widget.parent?.parent?.parent;
  if (!(split instanceof SplitPanel)) {
    return;
  }
  if (split.relativeSizes()[1] < LEAST) {
    const share = shares.get(split) ?? SHARE;
    split.setRelativeSizes([1 - share, share]);
  }
  widget.disposed.connect(() => {
    const [, share] = split.relativeSizes();
    if (share >= LEAST) {
      shares.set(split, share);
    }
  });
}
