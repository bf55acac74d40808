import { shortName } from '../model/cards';
import type { IGpu } from '../model/gpuContract';
import { seatsOn } from '../model/gpuUse';
import { trans } from '../model/trans';
import {
  formatMemory,
  formatRanks,
  formatUsed,
  joinFacts
} from '../words/format';
import { labelWithNode, sayLeaseholder } from '../words/gpuWords';
import type { IColours } from './colours';
import { element } from '../ui/element';
import { lanesIn, sayLanes } from './lanes';
import { formatTop, sayMetric, topOf, valueFormat } from './metrics';
import type { TimelineModel } from './model';
import type { IRowWords } from './scene';

/** One GPU: what the canvas shows of it, and an element that says so to screen readers. */
export class Row {
  constructor(
    parent: HTMLElement,
    private readonly _gpu: IGpu,
    private readonly _model: TimelineModel
  ) {
    this.node = element(parent, '');
    this.node.setAttribute('role', 'img');
    this._name = trans.__('GPU %1', labelWithNode(_gpu));
    this._total = formatMemory(_gpu.memory_total);
  }

  readonly node: HTMLElement;

  /** Name the element, and answer what to draw; `index` is the cursor's place in the values. */
  update(colours: IColours, index: number | null): IRowWords {
    const { _gpu: gpu } = this;
    const { choice, pools, current, recording, cells, view } = this._model;
    const { metric } = choice;
    const { uuid } = gpu;
    const reading = pools.telemetry.gpu(uuid);
    const own = current.pool;
    const seats = seatsOn(uuid, pools.pools.values(), own);
    const ranks = seats.map(({ rank }) => rank);
    const who = ranks.length
      ? trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks))
      : sayLeaseholder(reading, [], { pools: pools.pools, own });
    const { memory_used } = reading.values;
    const used =
      typeof memory_used === 'number' ? formatUsed(memory_used) : '–';
    const memory = `${used} / ${this._total}`;
    const values = recording.column(uuid, metric);
    const write = valueFormat(metric);
    const say = (value: number | null) => (value === null ? '–' : write(value));
    const latest = say(values.at(-1) ?? null);
    const lanes = lanesIn(cells.on(uuid), view);
    const pointed = index === null ? null : (values[index] ?? null);
    const top = topOf(metric, gpu, reading.values);
    this._set('title', `${shortName(gpu)}\n${who}`.trim());
    this._set(
      'aria-label',
      joinFacts([
        this._name,
        who,
        sayMetric(metric, latest),
        trans.__('memory: %1', memory),
        sayLanes(lanes, view)
      ])
    );
    return {
      name: this._name,
      value: index === null ? latest : say(pointed),
      who,
      memory,
      topLabel: formatTop(metric, top),
      hasRank: ranks.length > 0,
      pointed,
      values,
      top,
      bands: cells.on(uuid),
      waits: this._model.waits.on(uuid),
      lanes,
      colours: colours.curve(ranks[0])
    };
  }

  dispose(): void {
    this.node.remove();
  }

  /** A browser checks the element again after each change, even to the same value. */
  private _set(name: string, value: string): void {
    if (this.node.getAttribute(name) !== value) {
      this.node.setAttribute(name, value);
    }
  }

  private readonly _name: string;
  private readonly _total: string;
}
