import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';

import { trans } from '../model/trans';
import { labelWithNode } from '../words/gpuWords';
import { element } from './element';
import type { TimelineModel } from './model';
import { freeGpus } from './selection';

/**
 * The line below the curves that shows the free GPUs, or hides them.
 */
export class Fold {
  constructor(
    parent: HTMLElement,
    private readonly _model: TimelineModel
  ) {
    this._node = element(parent, 'jp-dist-Timeline-fold', 'button');
    this._node.type = 'button';
    this._caret = element(this._node, '', 'span');
    this._text = element(this._node, '', 'span');
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
    if (this._text.textContent !== text) {
      this._text.textContent = text;
    }
    const expanded = `${this._isOpen}`;
    if (this._node.getAttribute('aria-expanded') !== expanded) {
      this._node.setAttribute('aria-expanded', expanded);
      const icon = this._isOpen ? caretDownIcon : caretRightIcon;
      this._caret.replaceChildren(icon.element({ tag: 'span' }));
    }
  }

  private get _isOpen(): boolean {
    return this._model.choice.selection === 'all';
  }

  private readonly _node: HTMLButtonElement;
  private readonly _caret: HTMLElement;
  private readonly _text: HTMLElement;
}
