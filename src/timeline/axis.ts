import { element } from './element';
import type { Scale } from './scale';
import { ticksIn } from './ticks';
import type { ITick } from './ticks';

/** Half the pixels of a label, and the pixels of `now`. */
const HALF = 28;
const NOW = 44;

/** The labels that have room between the edges, and `now` at the right one. */
export function labelsIn(
  scale: Scale,
  step: number,
  from: number,
  width: number,
  isNow: boolean
): ITick[] {
  return ticksIn(
    scale.timeAt(from + HALF),
    scale.timeAt(from + width - HALF - (isNow ? NOW : 0)),
    step
  );
}

/**
 * Times of day below the curves.
 */
export class Axis {
  constructor(private readonly _parent: HTMLElement) {}

  draw(labels: readonly ITick[], scale: Scale): void {
    if (scale !== this._scale) {
      this._scale = scale;
      this._labels.forEach(node => node.remove());
      this._labels.clear();
    }
    const wanted = new Set(labels.map(({ time }) => time));
    for (const [time, node] of this._labels) {
      if (!wanted.has(time)) {
        node.remove();
        this._labels.delete(time);
      }
    }
    for (const { time, label } of labels) {
      if (!this._labels.has(time)) {
        const node = element(this._parent, 'jp-dist-Timeline-tick');
        node.textContent = label;
        node.style.left = `${Math.round(scale.place(time))}px`;
        this._labels.set(time, node);
      }
    }
  }

  private readonly _labels = new Map<number, HTMLElement>();
  private _scale: Scale | null = null;
}
