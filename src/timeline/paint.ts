import type { IStretch } from './bands';
import type { IColours, ICurveColours } from './colours';
import type { Column } from './recording';
import { indexOf } from './scale';
import type { Scale } from './scale';
import { ticksIn } from './ticks';

/** What one GPU's row shows. */
export interface ICurve {
  values: Column;
  /** The value at the upper edge. */
  top: number;
  /** When the GPU's ranks were busy. */
  bands: readonly Pick<IStretch, 'start' | 'end'>[];
  colours: ICurveColours;
}

/** What all rows show. */
export interface IScene {
  scale: Scale;
  times: readonly number[];
  curves: readonly ICurve[];
  /** Seconds between two lines of the grid. */
  tickStep: number;
  /** Pixels, with the line below. */
  rowHeight: number;
  colours: Pick<IColours, 'background' | 'band' | 'grid' | 'border'>;
}

/** A page's canvas, or a worker's. */
export type Context =
  CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** From, and to but without it. */
export type Stretch = readonly [number, number];

/**
 * Draw some rows between two pixels of the scale, where `edge` is the pixel at the left edge.
 */
export function paint(
  ctx: Context,
  scene: IScene,
  edge: number,
  [from, to]: Stretch,
  [first, last]: Stretch
): void {
  const { scale, rowHeight, colours, tickStep } = scene;
  const height = rowHeight - 1;
  const [top, all] = [first * rowHeight, (last - first) * rowHeight];
  ctx.save();
  ctx.beginPath();
  ctx.rect(from - edge, top, to - from, all);
  ctx.clip();
  ctx.fillStyle = colours.background;
  ctx.fillRect(from - edge, top, to - from, all);
  const curves = scene.curves.slice(first, last);
  ctx.fillStyle = colours.band;
  ctx.beginPath();
  curves.forEach(({ bands }, row) => {
    for (const { start, end } of bands) {
      const place = Math.round(scale.place(start));
      // However short, it is seen.
      const stop =
        end === null ? to : Math.max(place + 1, Math.round(scale.place(end)));
      const [left, right] = [Math.max(from, place), Math.min(to, stop)];
      if (left < right) {
        // One path, so that ranks on the same GPU do not make it darker, nor cells side by side.
        ctx.rect(left - edge, (first + row) * rowHeight, right - left, height);
      }
    }
  });
  ctx.fill();
  ctx.fillStyle = colours.grid;
  const [begin, end] = [scale.timeAt(from - 1), scale.timeAt(to)];
  for (const { time } of ticksIn(begin, end, tickStep)) {
    const left = Math.round(scale.place(time)) - edge;
    ctx.fillRect(left, top, 1, all);
  }
  // One more value on either side: lines go over the edges.
  const [start, stop] = [begin, end].map(time => indexOf(scene.times, time));
  const range: Stretch = [
    Math.max(0, start - 1),
    Math.min(scene.times.length, stop + 1)
  ];
  curves.forEach((curve, row) => {
    const bottom = (first + row) * rowHeight + height;
    drawCurve(ctx, scene, curve, range, edge, bottom);
  });
  ctx.fillStyle = colours.border;
  curves.forEach((_, row) =>
    ctx.fillRect(from - edge, (first + row) * rowHeight + height, to - from, 1)
  );
  ctx.restore();
}

function drawCurve(
  ctx: Context,
  { scale, times, rowHeight }: IScene,
  { values, top, colours }: ICurve,
  [start, stop]: Stretch,
  edge: number,
  bottom: number
): void {
  const height = rowHeight - 1;
  const line = new Path2D();
  ctx.fillStyle = colours.area;
  let before: readonly [number, number] | null = null;
  for (let index = start; index < stop; index++) {
    const value = values[index];
    if (value === null || value === undefined) {
      before = null;
      continue;
    }
    // At the edges one half of the line would not be seen.
    const up = Math.min(Math.max((value / top) * height, 0.5), height - 0.5);
    const point = [scale.place(times[index]) - edge, bottom - up] as const;
    if (before) {
      line.lineTo(...point);
      fillBelow(ctx, before, point, bottom);
    } else {
      line.moveTo(...point);
    }
    before = point;
  }
  ctx.strokeStyle = colours.line;
  ctx.lineJoin = 'round';
  // Browsers draw lines of one pixel many times faster than wider ones.
  ctx.lineWidth = 1;
  ctx.stroke(line);
}

/**
 * Fill what is below a piece of a line, pixel by pixel.
 *
 * One shape with as many corners as the line takes a browser without a GPU several times longer.
 */
function fillBelow(
  ctx: Context,
  [x0, y0]: readonly [number, number],
  [x1, y1]: readonly [number, number],
  bottom: number
): void {
  const slope = (y1 - y0) / (x1 - x0);
  for (let x = Math.round(x0); x < Math.round(x1); x++) {
    const y = Math.round(y0 + (x + 0.5 - x0) * slope);
    ctx.fillRect(x, y, 1, bottom - y);
  }
}
