/** Pixels, which the style sheet has too. */
export const LABEL_WIDTH = 148;
/** Of the value in a row's label, which ends with its margin. */
export const VALUE_WIDTH = 64;
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
