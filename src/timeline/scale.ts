/** Seconds between two ticks. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

export class Scale {
  constructor(
    readonly base: number,
    /** Seconds. */
    readonly perPixel: number
  ) {}

  /**
   * Show a stretch of time on some pixels. It begins at a whole pixel since the epoch: while time passes,
   * everything moves by whole pixels, so rounding does not change widths.
   */
  static over([begin, end]: readonly [number, number], width: number): Scale {
    // Differences of Unix times are not exact, and would shift all pixels.
    const perPixel = Number(((end - begin) / width).toPrecision(9));
    return new Scale(Math.round(begin / perPixel) * perPixel, perPixel);
  }

  place(time: number): number {
    return (time - this.base) / this.perPixel;
  }

  timeAt(pixel: number): number {
    return this.base + pixel * this.perPixel;
  }
}

/** The index of the first of rising times that is not before a time. */
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

/** The index of the nearest of rising times, or -1. */
export function nearest(times: readonly number[], time: number): number {
  const after = indexOf(times, time);
  return after > 0 &&
    (after === times.length || time - times[after - 1] < times[after] - time)
    ? after - 1
    : Math.min(after, times.length - 1);
}

export interface ITick {
  /** Unix seconds. */
  time: number;
  /** `14:02`, or `14:02:30` where minutes are not enough. */
  label: string;
}

/** Round times of day between two pixels, with at least `room` pixels from one to the next. */
export function ticksIn(
  scale: Scale,
  from: number,
  to: number,
  room: number
): ITick[] {
  const least = room * scale.perPixel;
  const step = STEPS.find(step => step >= least) ?? STEPS[STEPS.length - 1];
  const [begin, end] = [scale.timeAt(from), scale.timeAt(to)];
  const ticks: ITick[] = [];
  for (let time = Math.ceil(begin / step) * step; time <= end; time += step) {
    ticks.push({ time, label: formatClock(time, step < 60) });
  }
  return ticks;
}

// Made once: this is slower than drawing a chart.
const OPTIONS = {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23'
} as const;
const MINUTES = new Intl.DateTimeFormat([], OPTIONS);
const SECONDS = new Intl.DateTimeFormat([], { ...OPTIONS, second: '2-digit' });

export function formatClock(time: number, isFine: boolean): string {
  return (isFine ? SECONDS : MINUTES).format(time * 1000);
}
