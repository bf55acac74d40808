/**
 * Where times are: pixels from a moment that stays the same while time goes on, so that what is
 * drawn can be moved as a whole.
 */
export class Scale {
  constructor(
    /** Unix seconds, at pixel 0. */
    readonly base: number,
    /** Seconds. */
    readonly perPixel: number
  ) {}

  place(time: number): number {
    return (time - this.base) / this.perPixel;
  }

  timeAt(pixel: number): number {
    return this.base + pixel * this.perPixel;
  }
}

/** Where in rising times the first is that is not before a time. */
export function indexOf(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Where in rising times the one is that is nearest to a time; -1 if there is none. */
export function nearest(times: readonly number[], time: number): number {
  const after = indexOf(times, time);
  return after > 0 &&
    (after === times.length || time - times[after - 1] < times[after] - time)
    ? after - 1
    : Math.min(after, times.length - 1);
}
