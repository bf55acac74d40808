import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';

import { trans } from '../model/trans';
import { labelWithNode } from '../words/gpuWords';
import { element } from '../ui/element';
import type { TimelineModel } from './model';
import { freeGpus } from './selection';

/** The line below the curves that shows or hides the free GPUs. */
export class Fold {
  constructor(
    parent: HTMLElement,
    private readonly _model: TimelineModel
  ) {
    this._node = element(parent, 'jp-dist-Timeline-fold', 'button');
    this._node.type = 'button';
    this._node.addEventListener('click', () =>
      _model.choose({ selection: this._isOpen ? 'used' : 'all' })
    );
  }

  update(): void {
    const { pools, choice } = this._model;
    const free = freeGpus(pools.allGpus, pools.telemetry);
    this._node.hidden = !free.length || choice.selection === 'own';
    const text = trans._n(
      '%1 free GPU: %2',
      '%1 free GPUs: %2',
      free.length,
      free.map(gpu => labelWithNode(gpu)).join(', ')
    );
    const expanded = `${this._isOpen}`;
    if (
      this._node.lastElementChild?.textContent !== text ||
      this._node.getAttribute('aria-expanded') !== expanded
    ) {
      this._node.setAttribute('aria-expanded', expanded);
      const caret = this._isOpen ? caretDownIcon : caretRightIcon;
      const words = document.createElement('span');
      words.textContent = text;
      this._node.replaceChildren(caret.element({ tag: 'span' }), words);
    }
  }

  private get _isOpen(): boolean {
    return this._model.choice.selection === 'all';
  }

  private readonly _node: HTMLButtonElement;
}
