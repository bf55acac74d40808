import type { Pen } from './pen';
import { LABEL_WIDTH, LEGEND_LINE, type IRowWords } from './scene';

/** In the page's pixels: left of the labels, and for a label; for the name in it. */
export const MARGIN = 12;
export const LABEL_ROOM = 125;
const NAME_ROOM = 72;
/** The middles of a label's lines. */
const LINES = [16, 33, 50];
/** The color before a name, and the room for it. */
const [SWATCH, SWATCH_ROOM] = [8, 14];

/** Draw the label of a row; its top and height are in the screen's pixels. */
export function drawLabels(
  pen: Pen,
  row: IRowWords,
  top: number,
  height: number
): void {
  const quiet = { colour: pen.colours.quiet, room: pen.px(LABEL_ROOM) };
  const [first, second, third] = LINES.map(line => top + pen.px(line));
  const left = pen.px(MARGIN);
  if (row.hasRank) {
    pen.fill(row.colours.line, 0, top, pen.px(3), height);
  }
  const room = pen.px(NAME_ROOM);
  pen.text(row.name, left, first, { weight: 600, room });
  const right = pen.px(MARGIN + LABEL_ROOM);
  pen.text(row.value, right, first, { weight: 600, align: 'right' });
  pen.text(row.who, left, second, quiet);
  pen.text(row.memory, left, third, quiet);
}

/** Draw the labels of several curves in one chart: a line for each. */
export function drawLegend(
  pen: Pen,
  rows: readonly IRowWords[],
  top: number
): void {
  rows.forEach((row, index) => {
    const middle = top + pen.px(LEGEND_LINE * (index + 0.5) + 4);
    const left = pen.px(MARGIN);
    const size = pen.px(SWATCH);
    pen.fill(row.colours.line, left, middle - size / 2, size, size);
    const room = pen.px(NAME_ROOM - SWATCH_ROOM);
    const name = row.hasRank ? row.who : row.name;
    pen.text(name, left + pen.px(SWATCH_ROOM), middle, { weight: 600, room });
    const right = pen.px(MARGIN + LABEL_ROOM);
    pen.text(row.value, right, middle, { align: 'right' });
  });
}

/** Draw the lines below and beside a row, and the label of its upper edge. */
export function drawFrame(
  pen: Pen,
  topLabel: string,
  top: number,
  height: number
): void {
  const left = pen.px(LABEL_WIDTH);
  pen.fill(pen.colours.border, 0, top + height - 1, left, 1);
  pen.fill(pen.colours.border, left - 1, top, 1, height);
  pen.pill(topLabel, left + pen.px(2), top + pen.px(2), {
    background: pen.colours.veil,
    text: { size: 10, colour: pen.colours.quiet },
    height: pen.px(14),
    margin: pen.px(4)
  });
}
