import { labelOf, shortName } from '../model/cards';
import type { IGpu } from '../model/gpuContract';
import { seatsOn } from '../model/holders';
import type { ISeat } from '../model/holders';
import { formatMemory, formatRanks, formatUsed } from '../panel/format';
import { sayHolder } from '../panel/gpuWords';
import { colourOf } from '../panel/meters';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Chart } from './chart';
import type { IChartOptions } from './chart';
import type { IColours } from './colours';
import { formatTop, formatValue, nameMetric, topOf } from './metrics';
import type { TimelineModel } from './model';
import type { ITick } from './ticks';

/** Make an element with a class and a text. */
export function element(
  parent: HTMLElement,
  name: string,
  tag: keyof HTMLElementTagNameMap = 'div'
): HTMLElement {
  const node = parent.appendChild(document.createElement(tag));
  node.className = name;
  return node;
}

/**
 * One GPU: who has it and its value now, and beside that its curve.
 */
export class Row {
  constructor(
    parent: HTMLElement,
    private readonly _gpu: IGpu,
    private readonly _model: TimelineModel,
    private readonly _trans: TranslationBundle,
    options: IChartOptions
  ) {
    this.node = element(parent, 'jp-dist-TimelineRow');
    const label = element(this.node, 'jp-dist-TimelineRow-label');
    const head = element(label, 'jp-dist-TimelineRow-head');
    this._name = _trans.__('GPU %1', labelOf(_gpu));
    element(head, '', 'strong').textContent = this._name;
    this._value = textOf(element(head, 'jp-dist-TimelineRow-value', 'span'));
    const whoNode = element(label, 'jp-dist-quiet');
    this._who = new Text(who => {
      whoNode.textContent = whoNode.title = who;
    });
    this._memory = textOf(element(label, 'jp-dist-quiet'));
    label.title = shortName(_gpu);
    this.plot = element(this.node, 'jp-dist-TimelineRow-plot');
    this.plot.setAttribute('role', 'img');
    this._label = new Text(text => this.plot.setAttribute('aria-label', text));
    this.chart = new Chart(this.plot, options);
    this._top = textOf(element(this.plot, 'jp-dist-TimelineRow-top'));
  }

  readonly node: HTMLElement;
  readonly plot: HTMLElement;
  readonly chart: Chart;

  /** What the label says, line by line. */
  get lines(): string[] {
    return [this._name, this._value.text, this._who.text, this._memory.text];
  }

  /** What the upper edge of the chart means. */
  get top(): string {
    return this._top.text;
  }

  /** Draw the curve. */
  draw(colours: IColours, ticks: readonly ITick[]): void {
    const { metric, recording, view, bands, pools } = this._model;
    const { uuid } = this._gpu;
    const { values } = pools.telemetry.gpu(uuid);
    const rank = this._seats[0]?.rank;
    const top = topOf(metric, this._gpu, values);
    this.chart.draw({
      times: recording.times,
      values: recording.column(uuid, metric),
      view,
      top,
      bands: bands.on(uuid),
      ticks,
      curve: colours.curve(rank),
      colours
    });
    this._top.set(formatTop(metric, top, this._trans));
    this.node.style.setProperty(
      '--jp-dist-colour',
      rank === undefined
        ? 'transparent'
        : `var(--jp-dist-rank-${colourOf(rank)})`
    );
  }

  /** Say who has it, and the newest values. */
  label(): void {
    const { metric, pools } = this._model;
    const { uuid, memory_total } = this._gpu;
    const reading = pools.telemetry.gpu(uuid);
    const ranks = this._seats.map(({ rank }) => rank);
    const who = ranks.length
      ? this._trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks))
      : sayHolder(reading, [], pools, this._trans);
    this._who.set(who);
    const used = reading.values.memory_used;
    this._memory.set(
      `${typeof used === 'number' ? formatUsed(used) : '–'} / ${formatMemory(memory_total, this._trans)}`
    );
    this._label.set(
      this._trans.__(
        '%1: %2 %3',
        [this._name, who].filter(Boolean).join(', '),
        nameMetric(metric, this._trans),
        this._format(this._latest())
      )
    );
    this.showValue();
  }

  /** The value under the cursor, or else the newest. */
  showValue(): void {
    const pointed = this.chart.pointed;
    this._value.set(
      this._format(pointed === undefined ? this._latest() : pointed)
    );
  }

  dispose(): void {
    this.chart.dispose();
    this.node.remove();
  }

  private get _seats(): ISeat[] {
    const { pools, pool } = this._model.pools;
    return seatsOn(this._gpu.uuid, pools.values(), pool);
  }

  private _latest(): number | null {
    const { recording, metric } = this._model;
    return recording.column(this._gpu.uuid, metric).at(-1) ?? null;
  }

  private _format(value: number | null): string {
    return value === null
      ? '–'
      : formatValue(this._model.metric, value, this._trans);
  }

  private readonly _name: string;
  private readonly _label: Text;
  private readonly _value: Text;
  private readonly _who: Text;
  private readonly _memory: Text;
  private readonly _top: Text;
}

/** A text that is touched only when it is another one: the browser would lay it out again. */
class Text {
  constructor(private readonly _write: (text: string) => void) {}

  get text(): string {
    return this._said;
  }

  set(text: string): void {
    if (text !== this._said) {
      this._said = text;
      this._write(text);
    }
  }

  private _said = '';
}

function textOf(node: HTMLElement): Text {
  const data = node.appendChild(document.createTextNode(''));
  return new Text(text => (data.data = text));
}
