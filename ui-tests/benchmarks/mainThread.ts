import type { Browser, Page } from '@playwright/test';

interface ITraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds on the clock, and of the processor. */
  dur?: number;
  tdur?: number;
  args: { name?: string };
}

/** What the tasks of a page's main thread took, in milliseconds. */
export interface ITasks {
  /** The longest first: processor time, which others on the machine do not lengthen. */
  cpu: number[];
  /** The longest first: time on the clock. */
  clock: number[];
}

/**
 * Measure the tasks of a page's main thread while something happens.
 */
export async function measureTasks(
  browser: Browser,
  page: Page,
  act: () => Promise<void>
): Promise<ITasks> {
  await browser.startTracing(page, { categories: ['toplevel'] });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString());
  const events: ITraceEvent[] = trace.traceEvents;
  const thread = ({ pid, tid }: ITraceEvent) => `${pid} ${tid}`;
  const mains = new Set(
    events
      .filter(({ args }) => args.name === 'CrRendererMain')
      .map(event => thread(event))
  );
  const tasks = events.filter(
    event =>
      event.ph === 'X' &&
      event.name.endsWith('RunTask') &&
      mains.has(thread(event))
  );
  const longest = (values: number[]) =>
    values.map(value => value / 1000).sort((a, b) => b - a);
  return {
    cpu: longest(tasks.map(({ tdur = 0 }) => tdur)),
    clock: longest(tasks.map(({ dur = 0 }) => dur))
  };
}

/** One line of a report. */
export function sayTasks(what: string, { cpu, clock }: ITasks): void {
  const first = (values: number[]) =>
    values.slice(0, 3).map(Math.round).join(', ');
  const over = clock.filter(ms => ms > 100).length;
  console.log(
    `${what}: longest tasks ${first(cpu)} ms of processor time ` +
      `(${first(clock)} ms on the clock, ${over} over 100 ms)`
  );
}
