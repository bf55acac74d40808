import type { IGpu, Values } from '../model/gpuContract';
import { trans } from '../model/trans';
import { formatBytes, formatMemory } from '../words/format';

/** What the curves can show. */
export const METRICS = [
  'utilization',
  'memory_used',
  'power',
  'temperature'
] as const;
export type ChartMetric = (typeof METRICS)[number];

/** How many minutes they can show. */
export const RANGES = [1, 5, 15, 60] as const;

export function nameMetric(metric: ChartMetric): string {
  switch (metric) {
    case 'utilization':
      return trans.__('Utilization');
    case 'memory_used':
      return trans.__('Memory');
    case 'power':
      return trans.__('Power');
    case 'temperature':
      return trans.__('Temperature');
  }
}

/** A value and what it is of: `utilization: 64 %`. */
export function sayMetric(metric: ChartMetric, value: string): string {
  switch (metric) {
    case 'utilization':
      return trans.__('utilization: %1', value);
    case 'memory_used':
      return trans.__('memory in use: %1', value);
    case 'power':
      return trans.__('power: %1', value);
    case 'temperature':
      return trans.__('temperature: %1', value);
  }
}

/**
 * How the values of a metric are written.
 *
 * The words are translated once: for each value that would take longer than to draw it.
 */
export function valueFormat(metric: ChartMetric): (value: number) => string {
  const rounded = (words: string) => (value: number) =>
    words.replace('%1', `${Math.round(value)}`);
  switch (metric) {
    case 'utilization':
      return rounded(trans.__('%1 %', '%1'));
    case 'memory_used':
      return value => formatBytes(value);
    case 'power':
      return rounded(trans.__('%1 W', '%1'));
    case 'temperature':
      return rounded(trans.__('%1 °C', '%1'));
  }
}

/** What stands at the upper edge of a chart: `100 %`. */
export function formatTop(metric: ChartMetric, top: number): string {
  return metric === 'memory_used'
    ? formatMemory(top)
    : valueFormat(metric)(top);
}

/** The value at the upper edge of a GPU's chart, the lower one being 0. */
export function topOf(metric: ChartMetric, gpu: IGpu, values: Values): number {
  switch (metric) {
    case 'memory_used':
      return gpu.memory_total;
    case 'power':
      // Some GPUs do not tell their limit; the hungriest have about 1 kW.
      return values.power_limit ?? 1000;
    default:
      return 100;
  }
}
