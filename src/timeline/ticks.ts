/** Seconds between two ticks, all of which divide an hour or are whole hours. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
const MINUTE = 60;
/** Pixels that a tick's label needs. */
const ROOM = 84;

export interface ITick {
  /** Unix seconds. */
  time: number;
  /** `14:02`, or `14:02:30` where minutes are not enough. */
  label: string;
}

/** Seconds between two ticks, so that there is room for their labels. */
export function tickStep(perPixel: number): number {
  const least = ROOM * perPixel;
  return STEPS.find(step => step >= least) ?? STEPS[STEPS.length - 1];
}

/** Round times of day in a stretch of time. */
export function ticksIn(begin: number, end: number, step: number): ITick[] {
  const ticks: ITick[] = [];
  for (let time = Math.ceil(begin / step) * step; time <= end; time += step) {
    ticks.push({ time, label: formatClock(time, step < MINUTE) });
  }
  return ticks;
}

// Made once: it takes longer than drawing a chart.
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
