import { colourOf } from '../ui/meters';

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];

export interface ICurveColours {
  line: string;
  area: string;
}

/** What a canvas needs of the theme. */
export interface IColours {
  /** Of a rank's GPU; of a GPU without ranks. */
  curve(rank: number | undefined): ICurveColours;
  background: string;
  text: string;
  quiet: string;
  border: string;
  grid: string;
  /** Behind the curves, and the labels of what is over and of what goes on. */
  band: string;
  chip: string;
  brand: string;
  font: string;
}

/**
 * Read the colours of the theme as they are at a node now.
 */
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
  const curve = (colour: string): ICurveColours => ({
    line: read(colour),
    area: mix(colour, 20)
  });
  const ranks = RANKS.map(rank => curve(`var(--jp-dist-rank-${rank})`));
  const none = curve('var(--jp-ui-font-color3)');
  const colours: IColours = {
    curve: rank => (rank === undefined ? none : ranks[colourOf(rank)]),
    background: read('var(--jp-layout-color1)'),
    text: read('var(--jp-ui-font-color1)'),
    quiet: read('var(--jp-ui-font-color2)'),
    border: read('var(--jp-border-color2)'),
    grid: mix('var(--jp-border-color1)', 35),
    band: mix('var(--jp-brand-color1)', 11),
    chip: mix('var(--jp-brand-color1)', 16),
    brand: read('var(--jp-brand-color1)'),
    font: computed.fontFamily
  };
  probe.remove();
  return colours;
}
