import React, { useEffect } from 'react';

import type { IGpu, NumberMetric } from '../../model/gpuContract';
import type { IReading } from '../../model/reading';
import { trans } from '../../model/trans';
import { colourOf } from '../../ui/meters';
import { useModel } from '../../ui/useModel';
import { Missing, Value } from '../../ui/value';
import {
  formatBytes,
  formatRate,
  joinFacts,
  namePid
} from '../../words/format';
import { sayWho } from '../../words/gpuWords';
import type { IPanelServices } from '../services';

interface IGpuDetailsProps extends IPanelServices {
  id: string;
  label: string;
  gpu: IGpu;
  reading: IReading;
}

/** What runs on a GPU, and its other metrics; PCIe is read only while this is open. */
export function GpuDetails(props: IGpuDetailsProps): JSX.Element {
  const { id, gpu, reading, model } = props;
  const { telemetry } = model;
  useEffect(() => {
    const watching = telemetry.watch('pcie');
    return () => watching.dispose();
  }, [telemetry]);
  return (
    <div id={id} className="jp-dist-GpuDetails">
      <Processes {...props} />
      <dl>
        {metricRows().map(([label, metrics, format]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              {metrics.map((metric, index) => (
                <React.Fragment key={metric}>
                  {index > 0 && ' / '}
                  <Value metric={metric} reading={reading} format={format} />
                </React.Fragment>
              ))}
            </dd>
          </div>
        ))}
        <div>
          <dt>{trans.__('PCI bus')}</dt>
          <dd>{gpu.pci_bus_id}</dd>
        </div>
        <div>
          <dt>{trans.__('UUID')}</dt>
          <dd>{gpu.uuid}</dd>
        </div>
      </dl>
    </div>
  );
}

function Processes(props: IGpuDetailsProps): JSX.Element {
  const { label, reading, model, current } = props;
  const own = useModel(current, ({ pool }) => pool);
  const pools = useModel(model, ({ pools }) => pools);
  const { processes } = reading;
  if (!processes?.length) {
    return (
      <p className="jp-dist-quiet">
        {processes
          ? trans.__('No process uses this GPU.')
          : trans.__('No reading')}
      </p>
    );
  }
  const unknown = <Missing reason={trans.__('No reading')} />;
  return (
    <ul aria-label={trans.__('Processes on GPU %1', label)}>
      {processes.map(process => {
        const { pid, user, command, memory, sm, who } = process;
        return (
          <li
            key={pid}
            className={`jp-mod-${who.kind}`}
            data-colour={who.kind === 'rank' ? colourOf(who.rank) : undefined}
          >
            <div className="jp-dist-Spread">
              <span>{sayWho(process, { pools, own })}</span>
              <span>
                {memory === null ? unknown : formatBytes(memory)}
                {sm !== null && ` · ${trans.__('SM %1 %', Math.round(sm))}`}
              </span>
            </div>
            <div className="jp-dist-quiet" title={command ?? undefined}>
              {joinFacts([namePid(pid), user, command])}
            </div>
          </li>
        );
      })}
    </ul>
  );
}

type MetricRow = [
  label: string,
  metrics: NumberMetric[],
  format: (value: number) => string
];

function metricRows(): MetricRow[] {
  const percent = (value: number) => trans.__('%1 %', Math.round(value));
  const watts = (value: number) => trans.__('%1 W', Math.round(value));
  const megahertz = (value: number) => trans.__('%1 MHz', Math.round(value));
  const clocks: NumberMetric[] = ['clock_sm', 'clock_memory'];
  const ecc: NumberMetric[] = ['ecc_corrected', 'ecc_uncorrected'];
  return [
    [trans.__('SM active'), ['sm_active'], percent],
    [trans.__('Tensor cores active'), ['tensor_active'], percent],
    [trans.__('DRAM active'), ['dram_active'], percent],
    [trans.__('Memory busy'), ['memory_utilization'], percent],
    [trans.__('Power limit'), ['power_limit'], watts],
    [trans.__('Clocks: SM / memory'), clocks, megahertz],
    [trans.__('PCIe: sent / received'), ['pcie_tx', 'pcie_rx'], formatRate],
    [
      trans.__('NVLink: sent / received'),
      ['nvlink_tx', 'nvlink_rx'],
      formatRate
    ],
    [trans.__('Video: encoder / decoder'), ['encoder', 'decoder'], percent],
    [trans.__('Fan'), ['fan'], percent],
    [trans.__('Performance state'), ['pstate'], value => `P${value}`],
    [trans.__('ECC errors: corrected / not'), ecc, String]
  ];
}
