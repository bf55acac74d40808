import type { ILanes, IStretch } from '../model/cellContract';
import { BAND, COMMUNICATION, COMPUTE, GRID, WAIT } from './colours';
import type { IColours, ICurveColours, Pixels } from './colours';
import { mostOfPixels } from './lanes';
import type { Column } from './recording';
import { indexOf, type Scale } from './scale';

export interface ICurve {
  values: Column;
  /** The value at the upper edge. */
  top: number;
  bands: readonly Pick<IStretch, 'start' | 'end'>[];
  /** When they waited in a collective. */
  waits: readonly Pick<IStretch, 'start' | 'end'>[];
  /** What they did in cells that were profiled. */
  lanes: readonly ILanes[];
  colours: ICurveColours;
}

/** The contents of all rows. Places and sizes are in the screen's pixels. */
export interface ICurves {
  scale: Scale;
  times: readonly number[];
  curves: readonly ICurve[];
  grid: readonly number[];
  /** With the line below. */
  rowHeight: number;
  /** Whether all curves are in one row. */
  isOverlay: boolean;
  /** How much of the first rows is out of sight; negative if there are rows above them. */
  scrolled: number;
  /** The screen's pixels in one of the page's. */
  ratio: number;
}

/**
 * Draw curves at a corner of a context; answers from where to where, in the image.
 *
 * The areas behind and below the lines are filled pixel by pixel in the image: in a browser without a GPU,
 * shapes with as many corners take several times longer, and would be blurred between two pixels.
 */
export function paintCurves(
  ctx: CanvasRenderingContext2D,
  image: ImageData,
  [left, top]: readonly [number, number],
  all: ICurves,
  colours: Pick<IColours, 'behind' | 'edge'>
): readonly [number, number] {
  const { width, height } = image;
  const { rowHeight, scrolled } = all;
  const begin = Math.max(0, -scrolled);
  const rows = all.isOverlay
    ? Math.min(1, all.curves.length)
    : all.curves.length;
  const end = Math.min(height, rows * rowHeight - scrolled);
  const pixels = new Uint32Array(image.data.buffer);
  const { xs, start } = placesOf(all, width);
  const lines: { ys: Float64Array; colour: string }[] = [];
  all.curves.forEach((curve, index) => {
    const row = all.isOverlay ? 0 : index;
    const above = row * rowHeight - scrolled;
    const bottom = above + rowHeight - 1;
    if (bottom < 0 || above >= height) {
      return;
    }
    const ys = heightsOf(curve, xs.length, start, bottom, rowHeight);
    lines.push({ ys, colour: curve.colours.line });
    if (all.isOverlay && index > 0) {
      return; // only the line is missing
    }
    const layers = layersOf(all.isOverlay ? NOTHING : curve, all, width);
    const behind = colourPixels(layers, colours.behind);
    const area = all.isOverlay
      ? behind
      : colourPixels(layers, curve.colours.area);
    const edges = edgesOf(xs, ys, bottom, width);
    const first = Math.max(0, above);
    fill(pixels, behind, area, edges, first, Math.min(bottom, height));
    if (bottom < height) {
      pixels.fill(colours.edge, bottom * width, (bottom + 1) * width);
    }
  });
  ctx.putImageData(image, left, top, 0, begin, width, end - begin);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top + begin, width, end - begin);
  ctx.clip();
  ctx.translate(left, top);
  ctx.lineJoin = 'round';
  // Browsers draw lines of whole pixels many times faster than others.
  ctx.lineWidth = Math.max(1, Math.floor(all.ratio));
  for (const { ys, colour } of lines) {
    ctx.strokeStyle = colour;
    ctx.beginPath();
    let isOn = false;
    ys.forEach((y, index) => {
      if (Number.isNaN(y)) {
        isOn = false;
      } else if (isOn) {
        ctx.lineTo(xs[index], y);
      } else {
        ctx.moveTo(xs[index], y);
        isOn = true;
      }
    });
    ctx.stroke();
  }
  ctx.restore();
  return [begin, end];
}

/** Behind several curves, it would not be clear to which one it belongs. */
const NOTHING = { bands: [], waits: [], lanes: [] };
/** By index in `LANES`. */
const BEHIND = [COMPUTE, COMMUNICATION, WAIT];

function layersOf(
  { bands, waits, lanes }: Pick<ICurve, 'bands' | 'waits' | 'lanes'>,
  { scale, grid }: ICurves,
  width: number
) {
  const layers = new Uint8Array(width);
  const spans = [
    ...bands.map(span => [BAND, span] as const),
    ...waits.map(span => [BAND | WAIT, span] as const)
  ];
  for (const [layer, { start, end }] of spans) {
    const left = Math.round(scale.place(start));
    // At least a pixel.
    const right =
      end === null ? width : Math.max(left + 1, Math.round(scale.place(end)));
    if (right > 0) {
      layers.fill(layer, Math.max(0, left), right);
    }
  }
  if (lanes.length) {
    mostOfPixels(lanes, scale, width).forEach((lane, x) => {
      if (lane >= 0) {
        layers[x] = BAND | BEHIND[lane];
      }
    });
  }
  for (const time of grid) {
    layers[Math.round(scale.place(time))] |= GRID;
  }
  return layers;
}

function fill(
  pixels: Uint32Array,
  behind: Uint32Array,
  area: Uint32Array,
  edges: Int32Array,
  first: number,
  end: number
): void {
  const width = edges.length;
  for (let y = first; y < end; y++) {
    pixels.set(behind, y * width);
  }
  const stop = end * width;
  for (let x = 0; x < width; x++) {
    const colour = area[x];
    for (
      let at = Math.max(first, edges[x]) * width + x;
      at < stop;
      at += width
    ) {
      pixels[at] = colour;
    }
  }
}

function colourPixels(layers: Uint8Array, colours: Pixels): Uint32Array {
  const pixels = new Uint32Array(layers.length);
  for (let x = 0; x < pixels.length; x++) {
    pixels[x] = colours[layers[x]];
  }
  return pixels;
}

/** The places of the visible values, from index `start` on. */
function placesOf({ scale, times }: ICurves, width: number) {
  // With one more value on either side, because lines cross the edges.
  const start = Math.max(0, indexOf(times, scale.timeAt(0)) - 1);
  const stop = indexOf(times, scale.timeAt(width)) + 1;
  return { start, xs: times.slice(start, stop).map(time => scale.place(time)) };
}

/** The distance of each point from the top; NaN where nothing is known. */
function heightsOf(
  { values, top }: ICurve,
  count: number,
  start: number,
  bottom: number,
  rowHeight: number
): Float64Array {
  const height = rowHeight - 1;
  const ys = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const value = values[start + index] ?? NaN;
    // At the edges, half of the line would be cut off.
    const up = Math.min(Math.max((value / top) * height, 0.5), height - 0.5);
    ys[index] = bottom - up;
  }
  return ys;
}

/** The top of the area below a curve, for each pixel; `bottom` where nothing is known. */
function edgesOf(
  xs: readonly number[],
  ys: Float64Array,
  bottom: number,
  width: number
): Int32Array {
  const edges = new Int32Array(width).fill(bottom);
  for (let index = 1; index < ys.length; index++) {
    const x0 = xs[index - 1];
    const y0 = ys[index - 1];
    const x1 = xs[index];
    const slope = (ys[index] - y0) / (x1 - x0);
    if (Number.isNaN(slope)) {
      continue;
    }
    const stop = Math.min(width, Math.round(x1));
    for (let x = Math.max(0, Math.round(x0)); x < stop; x++) {
      edges[x] = Math.round(y0 + (x + 0.5 - x0) * slope);
    }
  }
  return edges;
}
