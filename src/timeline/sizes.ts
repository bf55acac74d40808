/** Pixels, which the style sheet has too. */
export const LABEL_WIDTH = 148;
/** Of a label without its margins, and of the value at the right of it. */
export const [WORDS_WIDTH, VALUE_WIDTH] = [125, 64];
/** Of the words in a label, and of a line of them. */
export const [TEXT, LINE] = [12, 18];
export const AXIS_HEIGHT = 24;
/** Of a lane of chips, and of a chip in it. */
export const LANE = 24;
export const CHIP = 18;
/** Beside a chip's label and between its parts. */
export const CHIP_MARGIN = 6;
/** A row is as high as there is room for, within these. */
export const [LOWEST, HIGHEST] = [62, 150];

/** Of all lanes, with the line below them. */
export function stripHeight(lanes: number): number {
  return lanes * LANE + 1;
}
