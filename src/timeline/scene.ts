import type { IChip } from './chips';
import type { ICurve, ICurves } from './curves';

/** The page's pixels, which the style sheet has too. */
export const LABEL_WIDTH = 148;
export const AXIS_HEIGHT = 24;
/** Of a line of the legend, where all curves are in one chart. */
export const LEGEND_LINE = 18;
/** Of a lane of chips, and of a chip in it. */
export const [LANE, CHIP] = [24, 18];
/** Of a picture that is saved. */
export const TITLE_HEIGHT = 34;

/** What stands beside and on a curve. */
export interface IRowWords extends ICurve {
  name: string;
  value: string;
  who: string;
  memory: string;
  /** What the upper edge means. */
  topLabel: string;
  hasRank: boolean;
  /** The value at the cursor, if there is one. */
  pointed: number | null;
}

export interface ILabelledChip extends IChip {
  /** The most important first. */
  parts: readonly string[];
}

/** All that a timeline shows. */
export interface IScene extends Omit<ICurves, 'grid' | 'curves'> {
  /** Of a picture that is saved. */
  title: string | null;
  /** What the lanes of cells are called. */
  lanes: readonly string[];
  /** In the page's pixels. */
  chips: readonly ILabelledChip[];
  rows: readonly IRowWords[];
  /** Whether all curves are in one row. */
  isOverlay: boolean;
  /** What the right edge is called; null if that is not now. */
  now: string | null;
  /** The page's pixels from the curves' left edge. */
  cursor: { x: number; time: number } | null;
  brush: readonly [number, number] | null;
}

/** Curves in one chart have one upper edge: the highest. */
export function withOneTop(rows: readonly IRowWords[]): IRowWords[] {
  const top = Math.max(...rows.map(row => row.top));
  const topLabel = rows.find(row => row.top === top)?.topLabel ?? '';
  return rows.map(row => ({ ...row, top, topLabel }));
}

/** Of all lanes, with the line below them. */
export function stripHeight(lanes: number): number {
  return lanes * LANE + 1;
}

/** How high the canvas must be to show all of a scene, in the screen's own pixels. */
export function fullHeight(scene: IScene): number {
  const above = stripHeight(scene.lanes.length) + AXIS_HEIGHT;
  const title = scene.title === null ? 0 : TITLE_HEIGHT;
  return (
    Math.round((above + title) * scene.ratio) +
    rowCount(scene) * scene.rowHeight
  );
}

/** How many rows there are below one another. */
export function rowCount({ rows, isOverlay }: IScene): number {
  return isOverlay ? Math.min(1, rows.length) : rows.length;
}
