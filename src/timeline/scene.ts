import type { IChip } from './chips';
import type { ICurve, ICurves } from './curves';

/** In the page's pixels, as in the style sheet. */
export const LABEL_WIDTH = 148;
export const AXIS_HEIGHT = 24;
/** The height of a label, if all curves are in one chart. */
export const LEGEND_LINE = 18;
/** The heights of a lane of chips, and of a chip. */
export const [LANE, CHIP] = [24, 18];
/** Of an image that is saved. */
export const TITLE_HEIGHT = 34;

/** A curve and its labels. */
export interface IRowWords extends ICurve {
  name: string;
  value: string;
  who: string;
  memory: string;
  /** The label of the upper edge. */
  topLabel: string;
  hasRank: boolean;
  /** The value at the cursor, if there is one. */
  pointed: number | null;
}

export interface ILabelledChip extends IChip {
  /** The most important first. */
  parts: readonly string[];
}

export interface IScene extends Omit<ICurves, 'grid' | 'curves'> {
  /** Of an image that is saved. */
  title: string | null;
  /** The names of the lanes of cells. */
  lanes: readonly string[];
  /** In the page's pixels. */
  chips: readonly ILabelledChip[];
  rows: readonly IRowWords[];
  /** The label of the right edge. */
  now: string | null;
  /** In the page's pixels from the left edge of the curves. */
  cursor: { x: number; time: number } | null;
  brush: readonly [number, number] | null;
}

/** Give all curves the highest upper edge. */
export function withOneTop(rows: readonly IRowWords[]): IRowWords[] {
  const top = Math.max(...rows.map(row => row.top));
  const topLabel = rows.find(row => row.top === top)?.topLabel ?? '';
  return rows.map(row => ({ ...row, top, topLabel }));
}

export function stripHeight(lanes: number): number {
  return lanes * LANE + 1;
}

export function fullHeight(scene: IScene): number {
  const above = stripHeight(scene.lanes.length) + AXIS_HEIGHT;
  const title = scene.title === null ? 0 : TITLE_HEIGHT;
  return (
    Math.round((above + title) * scene.ratio) +
    rowCount(scene) * scene.rowHeight
  );
}

export function rowCount({ rows, isOverlay }: IScene): number {
  return isOverlay ? Math.min(1, rows.length) : rows.length;
}
