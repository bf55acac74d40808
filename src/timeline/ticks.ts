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

/**
 * Round times of day in a stretch of time, no more than there is room for.
 */
export function ticksIn(begin: number, end: number, width: number): ITick[] {
  const least = ((end - begin) * ROOM) / Math.max(width, ROOM);
  const step = STEPS.find(step => step >= least) ?? STEPS[STEPS.length - 1];
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
