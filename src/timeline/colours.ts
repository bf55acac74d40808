import { colourOf } from '../ui/meters';

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * What is behind a curve, a bit each: a cell that ran then, a line of the grid, a rank that waited, and
 * what it did otherwise in a cell that was profiled.
 */
export const [BAND, GRID, WAIT, COMPUTE, COMMUNICATION] = [1, 2, 4, 8, 16];

/** Colours of pixels as they lie in an `ImageData`, by what is behind the curve. */
export type Pixels = readonly number[];

export interface ICurveColours {
  line: string;
  /** Below the line. */
  area: Pixels;
}

/** What a canvas needs of the theme. */
export interface IColours {
  /** Of a rank's GPU; of a GPU without ranks. */
  curve(rank: number | undefined): ICurveColours;
  /** Behind the curves. */
  behind: Pixels;
  /** The line below a row. */
  edge: number;
  background: string;
  text: string;
  quiet: string;
  border: string;
  /** Behind the label of a cell, and around it while it runs. */
  chip: string;
  brand: string;
  /** Behind what stands on a curve. */
  veil: string;
  cursor: string;
  brush: string;
  clock: string;
  clockText: string;
  font: string;
}

/** Read the colours of the theme as they are at a node now. */
export function readColours(node: HTMLElement): IColours {
  // A canvas does not know variables, so the browser has to work out what they are.
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
  const band = mix('var(--jp-brand-color1)', 11);
  const grid = mix('var(--jp-border-color1)', 35);
  const wait = mix('var(--jp-warn-color1)', 30);
  const compute = mix('var(--jp-success-color1)', 30);
  const communication = mix('var(--jp-info-color1)', 40);
  const layers = [...Array(32).keys()].map(bits => [
    ...(bits & BAND ? [band] : []),
    ...(bits & WAIT ? [wait] : []),
    ...(bits & COMPUTE ? [compute] : []),
    ...(bits & COMMUNICATION ? [communication] : []),
    ...(bits & GRID ? [grid] : [])
  ]);
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

/** What a pixel looks like with some colours on top of each other. */
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
