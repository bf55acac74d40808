import { trans } from '../model/trans';
import { element } from './element';
import { LANES, lanesIn, nameLane } from './lanes';
import type { TimelineModel } from './model';

/**
 * Which colour is what in cells that were profiled; there while one of them is in sight.
 */
export class Legend {
  constructor(
    parent: HTMLElement,
    private readonly _model: TimelineModel
  ) {
    this._node = element(parent, 'jp-dist-Timeline-legend');
    element(this._node, '', 'span').textContent = trans.__(
      'Profiled cells, most of the time:'
    );
    for (const lane of LANES) {
      const entry = element(this._node, 'jp-dist-Timeline-lane', 'span');
      entry.dataset.lane = lane;
      entry.append(nameLane(lane));
    }
  }

  update(): void {
    const { gpus, cells, view, choice } = this._model;
    this._node.hidden =
      choice.isOverlay ||
      !gpus.some(({ uuid }) => lanesIn(cells.on(uuid), view).length);
  }

  private readonly _node: HTMLElement;
}
