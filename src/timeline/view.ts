/** A stretch of time: from, to, in Unix seconds. */
export type View = readonly [number, number];

/** Seconds: no closer than this. */
export const CLOSEST = 5;

/** What is seen of a whole by a zoom: not too close, and within it; null if that is all of it. */
export function zoomWithin(
  [begin, end]: View,
  from: number,
  to: number
): View | null {
  const width = Math.max(CLOSEST, to - from);
  if (width >= end - begin) {
    return null;
  }
  const start = Math.min(Math.max(from, begin), end - width);
  return [start, start + width];
}
