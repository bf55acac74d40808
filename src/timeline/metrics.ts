import type { IGpu, Values } from '../model/gpuContract';
import { trans } from '../model/trans';
import { formatBytes, formatMemory } from '../words/format';

export const METRICS = [
  'utilization',
  'memory_used',
  'power',
  'temperature'
] as const;
export type ChartMetric = (typeof METRICS)[number];

/** Minutes. */
export const RANGES = [1, 5, 15, 60] as const;

export function nameMetric(metric: ChartMetric): string {
  return {
    utilization: trans.__('Utilization'),
    memory_used: trans.__('Memory'),
    power: trans.__('Power'),
    temperature: trans.__('Temperature')
  }[metric];
}

/** `utilization: 64 %` */
export function sayMetric(metric: ChartMetric, value: string): string {
  return {
    utilization: trans.__('utilization: %1', value),
    memory_used: trans.__('memory in use: %1', value),
    power: trans.__('power: %1', value),
    temperature: trans.__('temperature: %1', value)
  }[metric];
}

/** Writes values of a metric. The words are translated once: translating takes longer than drawing. */
export function valueFormat(metric: ChartMetric): (value: number) => string {
  const rounded = (words: string) => (value: number) =>
    words.replace('%1', `${Math.round(value)}`);
  return {
    utilization: rounded(trans.__('%1 %', '%1')),
    memory_used: (value: number) => formatBytes(value),
    power: rounded(trans.__('%1 W', '%1')),
    temperature: rounded(trans.__('%1 °C', '%1'))
  }[metric];
}

/** The label at the upper edge of a chart: `100 %`. */
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
      // Not all drivers report the limit; the highest is about 1 kW.
      return values.power_limit ?? 1000;
    default:
      return 100;
  }
}
