import type { ICellRun } from '../model/cells';
import type { Scale } from './scale';

/** Chips that are narrower, in pixels, may be joined. */
const NARROW = 6;
/** They are joined if the gap between them is not wider, in pixels. */
const GAP = 3;
/** Further notebooks share the last lane. */
const MOST_LANES = 4;

/** Represents a cell above the curves, or several that are too narrow to be shown one by one. */
export interface IChip {
  cells: [ICellRun, ...ICellRun[]];
  /** Each notebook has its lane. */
  lane: number;
  left: number;
  right: number;
  /** Its label has room up to here: the next chip in the lane. */
  room: number;
  isRunning: boolean;
}

/** The chips between two pixels of the scale, by lane and time. */
export function chipsIn(
  cells: readonly ICellRun[],
  scale: Scale,
  [from, to]: readonly [number, number]
): IChip[] {
  const lanes = new Map<string, IChip[]>();
  for (const cell of cells) {
    const { end } = cell;
    const start = Math.round(scale.place(cell.start));
    const stop = end === null ? to : Math.round(scale.place(end));
    if (start >= to || stop < from) {
      continue;
    }
    const left = Math.max(from, start);
    const right = Math.min(to, Math.max(stop, left + 2));
    const lane = cell.name || cell.pool;
    const chips = lanes.get(lane) ?? [];
    lanes.set(lane, chips);
    const before = chips.at(-1);
    const isNarrow = right - left < NARROW && left === start;
    if (
      before &&
      isNarrow &&
      !before.isRunning &&
      left - before.right <= GAP &&
      (before.cells.length > 1 || before.right - before.left < NARROW)
    ) {
      before.cells.push(cell);
      before.right = Math.max(before.right, right);
      before.isRunning = end === null;
    } else {
      const isRunning = end === null;
      chips.push({ cells: [cell], lane: 0, left, right, room: 0, isRunning });
    }
  }
  return [...lanes.values()].flatMap((chips, index) => {
    chips.forEach((chip, number) => {
      chip.lane = Math.min(index, MOST_LANES - 1);
      chip.room = chips[number + 1]?.left ?? to;
    });
    return chips;
  });
}

/** The first parts of a label that have room side by side. */
export function fitLabel(
  parts: readonly string[],
  room: number,
  gap: number,
  measure: (text: string) => number
): string[] {
  let used = 0;
  const fitting: string[] = [];
  for (const part of parts) {
    used += measure(part) + (fitting.length ? gap : 0);
    if (used > room) {
      break;
    }
    fitting.push(part);
  }
  return fitting;
}
