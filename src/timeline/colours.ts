import { colourOf } from '../ui/meters';

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];

/** What is behind a curve, a bit each: a cell, a grid line, and what a rank did. */
export const [BAND, GRID, WAIT, COMPUTE, COMMUNICATION] = [1, 2, 4, 8, 16];

/** Colors as in an `ImageData`, by what is behind the curve. */
export type Pixels = readonly number[];

export interface ICurveColours {
  line: string;
  /** Below the line. */
  area: Pixels;
}

export interface IColours {
  curve(rank: number | undefined): ICurveColours;
  /** Behind the curves. */
  behind: Pixels;
  edge: number;
  background: string;
  text: string;
  quiet: string;
  border: string;
  chip: string;
  brand: string;
  veil: string;
  cursor: string;
  brush: string;
  clock: string;
  clockText: string;
  font: string;
}

export function readColours(node: HTMLElement): IColours {
  // A canvas has no CSS variables.
  const probe = node.appendChild(document.createElement('span'));
  const computed = getComputedStyle(probe);
  const read = (colour: string) => {
    probe.style.color = colour;
    return computed.color;
  };
  const mix = (colour: string, percent: number) =>
    read(`color-mix(in srgb, ${colour} ${percent}%, transparent)`);
  const pixel = makeBlender();
  const background = read('var(--jp-layout-color1)');
  const border = read('var(--jp-border-color2)');
  /** From the back to the front. */
  const parts = [
    [BAND, mix('var(--jp-brand-color1)', 11)],
    [WAIT, mix('var(--jp-warn-color1)', 30)],
    [COMPUTE, mix('var(--jp-success-color1)', 30)],
    [COMMUNICATION, mix('var(--jp-info-color1)', 40)],
    [GRID, mix('var(--jp-border-color1)', 35)]
  ] as const;
  const layers = [...Array(32).keys()].map(bits =>
    parts.flatMap(([bit, colour]) => (bits & bit ? colour : []))
  );
  const curve = (colour: string): ICurveColours => {
    const area = mix(colour, 20);
    return {
      line: read(colour),
      area: layers.map(behind => pixel(background, ...behind, area))
    };
  };
  const ranks = RANKS.map(rank => curve(`var(--jp-dist-rank-${rank})`));
  const none = curve('var(--jp-ui-font-color3)');
  const colours: IColours = {
    curve: rank => (rank === undefined ? none : ranks[colourOf(rank)]),
    behind: layers.map(behind => pixel(background, ...behind)),
    edge: pixel(background, border),
    background,
    text: read('var(--jp-ui-font-color1)'),
    quiet: read('var(--jp-ui-font-color2)'),
    border,
    chip: mix('var(--jp-brand-color1)', 16),
    brand: read('var(--jp-brand-color1)'),
    veil: mix('var(--jp-layout-color1)', 75),
    cursor: read('var(--jp-ui-font-color3)'),
    brush: mix('var(--jp-brand-color1)', 18),
    clock: read('var(--jp-inverse-layout-color1)'),
    clockText: read('var(--jp-ui-inverse-font-color1)'),
    font: computed.fontFamily
  };
  probe.remove();
  return colours;
}

/** Blends layers into the color of a pixel. */
function makeBlender(): (...layers: string[]) => number {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const ctx = canvas.getContext('2d', { willReadFrequently: true })!;
  return (...layers) => {
    for (const layer of layers) {
      ctx.fillStyle = layer;
      ctx.fillRect(0, 0, 1, 1);
    }
    return new Uint32Array(ctx.getImageData(0, 0, 1, 1).data.buffer)[0];
  };
}
