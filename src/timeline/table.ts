import { labelOf } from '../model/cards';
import type { IRankRun } from '../model/cells';
import { METRICS, type ChartMetric } from './metrics';
import type { TimelineModel } from './model';
import { indexOf } from './scale';

/** The titles are those of the server's own table, which are those of `nvidia-smi`. */
const COLUMNS: Record<ChartMetric, [string, (value: number) => string]> = {
  utilization: ['utilization.gpu [%]', rounded],
  memory_used: ['memory.used [MiB]', bytes => `${Math.round(bytes / 2 ** 20)}`],
  power: ['power.draw [W]', rounded],
  temperature: ['temperature.gpu', rounded]
};

/** What is visible as a table for a spreadsheet: a line for each time and GPU. */
export function makeTable({ recording, view, gpus, cells }: TimelineModel) {
  const [begin, end] = view;
  const titles = METRICS.map(metric => COLUMNS[metric][0]);
  const lines = [['timestamp', 'gpu', 'uuid', 'ranks', 'cell', ...titles]];
  const { times } = recording;
  for (
    let index = indexOf(times, begin);
    index < times.length && times[index] <= end;
    index++
  ) {
    const time = times[index];
    for (const gpu of gpus) {
      const values = METRICS.map(metric => {
        const value = recording.column(gpu.uuid, metric)[index] ?? null;
        return value === null ? '' : COLUMNS[metric][1](value);
      });
      if (values.some(Boolean)) {
        const busy = cells.on(gpu.uuid).filter(run => covers(run, time));
        lines.push([
          new Date(time * 1000).toISOString(),
          labelOf(gpu),
          gpu.uuid,
          busy.map(({ rank }) => rank).join(' '),
          [...new Set(busy.map(({ cell }) => cell ?? ''))].join(' '),
          ...values
        ]);
      }
    }
  }
  return lines.map(line => `${line.join(',')}\n`).join('');
}

function covers({ start, end }: IRankRun, time: number): boolean {
  return start <= time && (end === null || time < end);
}

/** Means have more digits than anybody knows. */
function rounded(value: number): string {
  return `${Math.round(value * 100) / 100}`;
}
