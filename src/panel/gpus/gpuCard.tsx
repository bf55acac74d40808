import React, { useId, useState } from 'react';

import { labelOf, shortName } from '../../model/cards';
import type { IGpu } from '../../model/gpuContract';
import { isSameSeats, seatsOn, segments } from '../../model/gpuUse';
import type { ISeat } from '../../model/gpuUse';
import type { IReading } from '../../model/reading';
import { serverTime } from '../../model/serverTime';
import { trans } from '../../model/trans';
import { startCellDrag } from '../../ui/codeCells';
import { Link } from '../../ui/controls';
import { MemoryMeter, Percent } from '../../ui/meters';
import { Sparkline, useSpan } from '../../ui/sparkline';
import { useModel } from '../../ui/useModel';
import { Value } from '../../ui/value';
import {
  formatBytes,
  formatMemory,
  formatMoment,
  formatUsed,
  joinFacts
} from '../../words/format';
import {
  labelWithNode,
  sayLeaseholder,
  saySegment
} from '../../words/gpuWords';
import { startCode } from '../../words/startCode';
import type { IPanelServices } from '../services';
import { GpuDetails } from './gpuDetails';

type Props = IPanelServices & { gpu: IGpu };

/** One GPU, or one instance of one: how busy it is, and by whom. */
export function GpuCard(props: Props): JSX.Element {
  const { gpu, model, current } = props;
  const reading = useModel(model.telemetry, telemetry =>
    telemetry.gpu(gpu.uuid)
  );
  const own = useModel(current, ({ pool }) => pool?.id ?? null);
  const seats = useModel(
    current,
    ({ pool }) => seatsOn(gpu.uuid, model.pools.values(), pool),
    isSameSeats
  );
  const label = labelWithNode(gpu);
  const name = trans.__('GPU %1', label);
  const source = gpuCode(props, seats, own);
  return (
    <li
      className="jp-dist-GpuCard"
      aria-label={name}
      data-dist-code={source ?? undefined}
    >
      <div
        className={
          source === null
            ? 'jp-dist-GpuCard-head'
            : 'jp-dist-GpuCard-head jp-mod-draggable'
        }
        onPointerDown={event =>
          source !== null && startCellDrag(event, { source, label: name })
        }
      >
        <strong title={gpu.uuid}>{trans.__('GPU %1', labelOf(gpu))}</strong>
        <span className="jp-dist-quiet" title={gpu.name}>
          {shortName(gpu)}
        </span>
        <Percent
          label={trans.__('Utilization of GPU %1', label)}
          title={trans.__('Share of time a CUDA kernel was running')}
          value={reading.values.utilization ?? null}
        >
          <Value
            metric="utilization"
            reading={reading}
            format={value => trans.__('%1 %', Math.round(value))}
          />
        </Percent>
      </div>
      <Load {...props} label={label} reading={reading} seats={seats} />
      <Memory {...props} label={label} reading={reading} seats={seats} />
      <Throttle {...props} reading={reading} />
      <Leaseholder {...props} label={label} reading={reading} seats={seats} />
    </li>
  );
}

/** A cell for a GPU: for the notebook's ranks that sit there, else one that starts a rank there, if it can. */
function gpuCode(
  { gpu }: Props,
  seats: ISeat[],
  own: string | null
): string | null {
  const ranks = seats.filter(({ pool }) => pool.id === own);
  if (ranks.length) {
    return `%%rank [${ranks.map(({ rank }) => rank).join(',')}]\n`;
  }
  return gpu.node ? null : startCode({ num_ranks: 1, gpu_ids: [labelOf(gpu)] });
}

interface IPartProps extends Props {
  /** `3`, or `3:1` for instance 1 of GPU 3. */
  label: string;
  reading: IReading;
  /** The ranks that sit on it; it has the colour of the first. */
  seats: ISeat[];
}

/** Nothing, where the GPU cannot tell, as most MIG instances, or may not. */
function Load(props: IPartProps): JSX.Element | null {
  const { label, reading, seats } = props;
  const { errors, curve } = reading;
  const span = useSpan(props);
  if (['unsupported', 'no permission'].includes(errors.utilization ?? '')) {
    return null;
  }
  return (
    <Sparkline
      label={trans.__('Utilization of GPU %1 until now', label)}
      curve={curve}
      span={span}
      rank={seats[0]?.rank}
    />
  );
}

function Memory(props: IPartProps): JSX.Element {
  const { gpu, label, reading, seats, model } = props;
  const total = gpu.memory_total;
  const value = (
    metric: 'memory_used' | 'power' | 'temperature',
    format: (value: number) => string
  ) => <Value metric={metric} reading={reading} format={format} />;
  const used = reading.values.memory_used;
  return (
    <>
      {total > 0 && (
        <MemoryMeter
          label={trans.__('Memory of GPU %1', label)}
          text={trans.__(
            '%1 of %2',
            typeof used === 'number' ? formatBytes(used) : '–',
            formatMemory(total)
          )}
          total={total}
          segments={segments(reading, seats, model.telemetry).map(segment => ({
            ...segment,
            label: saySegment(segment)
          }))}
        />
      )}
      <div className="jp-dist-Spread jp-dist-quiet">
        <span>
          {value('memory_used', formatUsed)}
          {total > 0 && ` / ${formatMemory(total)}`}
        </span>
        <span>
          {value('power', watts => trans.__('%1 W', Math.round(watts)))}
          {' · '}
          {value('temperature', degrees =>
            trans.__('%1 °C', Math.round(degrees))
          )}
        </span>
      </div>
    </>
  );
}

/** What holds the clocks down. */
function Throttle({
  reading
}: Props & { reading: IReading }): JSX.Element | null {
  const { throttle, clock_sm } = reading.values;
  if (!throttle) {
    return null;
  }
  const facts = throttle.split(', ');
  if (typeof clock_sm === 'number') {
    facts.push(trans.__('clocks %1 MHz', Math.round(clock_sm)));
  }
  return <div className="jp-dist-warn">{joinFacts(facts)}</div>;
}

/** Who has it; what runs there is shown on demand. */
function Leaseholder(props: IPartProps): JSX.Element {
  const { label, reading, seats, model, current } = props;
  const leaseholder = useModel(current, ({ pool }) =>
    sayLeaseholder(reading, seats, { pools: model.pools, own: pool })
  );
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();
  const count = reading.processes?.length;
  const since = reading.lease?.since;
  return (
    <>
      <div className="jp-dist-GpuCard-foot">
        <span
          className="jp-dist-quiet"
          title={
            since
              ? trans.__('Since %1', formatMoment(since, serverTime()))
              : undefined
          }
        >
          {leaseholder}
        </span>
        <Link
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          aria-label={trans.__('Details of GPU %1', label)}
          onClick={() => setIsOpen(!isOpen)}
        >
          {count
            ? trans._n('%1 process', '%1 processes', count)
            : trans.__('Details')}
        </Link>
      </div>
      {isOpen && <GpuDetails {...props} id={id} />}
    </>
  );
}
