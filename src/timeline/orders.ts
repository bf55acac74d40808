import type { IColours } from './colours';
import { indexOf } from './scale';
import type { IScene, Stretch } from './paint';

/** What a canvas is to be like; it is known by a number. */
export interface ISize {
  id: number;
  /** In the screen's own pixels. */
  width: number;
  height: number;
  /** The screen's own pixels in one of the page's. */
  ratio: number;
}

/** Part of a scene, in a shape that can be sent to another thread. */
export interface IPart extends Omit<IScene, 'scale'> {
  /** Of the scale. */
  base: number;
  perPixel: number;
}

/** Draw curves. */
export interface IPaintOrder extends ISize {
  type: 'paint';
  part: IPart;
  /** The pixel of the scale at the canvas's left edge. */
  edge: number;
  stretch: Stretch;
  rows: Stretch;
}

/** One text, in the page's pixels. */
export interface IWords {
  text: string;
  style: 'value' | 'memory';
  /** The middle of its line. */
  y: number;
}

/** Write what stands beside the curves. */
export interface IWriteOrder extends ISize {
  type: 'write';
  /** Whether it is all that is to stand there. */
  isAll: boolean;
  words: readonly IWords[];
  colours: Pick<IColours, 'text' | 'quiet' | 'font'>;
}

/** What is asked of the painter. */
export type Order =
  | { type: 'take'; id: number; canvas: OffscreenCanvas }
  | { type: 'forget'; id: number }
  | IPaintOrder
  | IWriteOrder;

/** What is needed of a scene to draw some of its pixels and rows: so little is quickly sent. */
export function cut(
  scene: IScene,
  [from, to]: Stretch,
  [first, last]: Stretch
): IPart {
  const { scale, times, curves, tickStep, rowHeight, colours } = scene;
  const { background, band, grid, border } = colours;
  const [begin, end] = [scale.timeAt(from - 1), scale.timeAt(to)];
  // One more value on either side: lines go over the edges.
  const start = Math.max(0, indexOf(times, begin) - 1);
  const stop = indexOf(times, end) + 1;
  return {
    base: scale.base,
    perPixel: scale.perPixel,
    times: times.slice(start, stop),
    curves: curves.map(({ values, bands, ...curve }, row) => {
      const isSeen = first <= row && row < last;
      return {
        ...curve,
        values: isSeen ? values.slice(start, stop) : [],
        bands: isSeen
          ? bands
              .filter(
                one => one.start < end && (one.end === null || one.end > begin)
              )
              .map(one => ({ start: one.start, end: one.end }))
          : []
      };
    }),
    tickStep,
    rowHeight,
    colours: { background, band, grid, border }
  };
}
