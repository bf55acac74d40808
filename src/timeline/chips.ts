import type { ICellRun } from '../model/cells';
import type { Scale } from './scale';

/** Pixels: what is narrower has no room for a word, nor for a finger. */
const NARROW = 6;
/** Pixels between two narrow ones that are one chip. */
const GAP = 3;
/** More notebooks than this at one time share the last lane. */
const MOST_LANES = 4;

/** What stands for a cell above the curves, or for several that are too narrow to tell apart. */
export interface IChip {
  cells: [ICellRun, ...ICellRun[]];
  /** Each notebook has one. */
  lane: number;
  /** Pixels of the scale. */
  left: number;
  right: number;
  /** Up to where there is room for its label: the next chip of its lane. */
  room: number;
  isRunning: boolean;
}

/** What stands above the curves between two pixels of the scale, by lane and time. */
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
    let chips = lanes.get(lane);
    if (!chips) {
      lanes.set(lane, (chips = []));
    }
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

/** The first parts of a label, as many as there is room for side by side. */
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
