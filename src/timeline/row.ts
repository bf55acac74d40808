import type { TranslationBundle } from '@jupyterlab/translation';

import { labelOf, shortName } from '../model/cards';
import type { IGpu } from '../model/gpuContract';
import { seatsOn } from '../model/gpuUse';
import type { ISeat } from '../model/gpuUse';
import { formatMemory, formatRanks, formatUsed } from '../words/format';
import { sayLeaseholder } from '../words/gpuWords';
import { colourOf } from '../ui/meters';
import type { IColours } from './colours';
import { element, hide, Text, textOf } from './element';
import { formatTop, nameMetric, topOf, valueFormat } from './metrics';
import type { TimelineModel } from './model';
import type { ICurve } from './paint';

/**
 * One GPU: who has it and its value now, and beside that the place of its curve.
 */
export class Row {
  constructor(
    parent: HTMLElement,
    private readonly _gpu: IGpu,
    private readonly _model: TimelineModel,
    private readonly _trans: TranslationBundle
  ) {
    this.node = element(parent, 'jp-dist-TimelineRow');
    const label = element(this.node, 'jp-dist-TimelineRow-label');
    this._name = _trans.__('GPU %1', labelOf(_gpu));
    this._total = formatMemory(_gpu.memory_total, _trans);
    element(label, 'jp-dist-TimelineRow-name').textContent = this._name;
    const who = element(label, 'jp-dist-quiet');
    this._who = new Text(text => (who.textContent = who.title = text));
    label.title = shortName(_gpu);
    const plot = element(this.node, 'jp-dist-TimelineRow-plot');
    plot.setAttribute('role', 'img');
    this._label = new Text(text => plot.setAttribute('aria-label', text));
    this._top = textOf(element(plot, 'jp-dist-TimelineRow-top'));
    this._dot = element(plot, 'jp-dist-TimelineRow-dot');
    this._dot.hidden = true;
    this._colour = new Text(colour =>
      this.node.style.setProperty('--jp-dist-colour', colour)
    );
  }

  readonly node: HTMLElement;

  /** What the label says, line by line. */
  get lines(): string[] {
    return [this._name, this._value, this._who.text, this._memory];
  }

  /** The value that is shown. */
  get value(): string {
    return this._value;
  }

  /** What of its memory is used. */
  get memory(): string {
    return this._memory;
  }

  /** What the upper edge of the curve means. */
  get top(): string {
    return this._top.text;
  }

  /** Changes whenever the curve has to be drawn anew, but for newer values. */
  get look(): string {
    return `${this._rank} ${this._topValue}`;
  }

  /** What is to be drawn. */
  curve(colours: IColours): ICurve {
    const { metric, recording, bands } = this._model;
    const { uuid } = this._gpu;
    return {
      values: recording.column(uuid, metric),
      top: this._topValue,
      bands: bands.on(uuid),
      colours: colours.curve(this._rank)
    };
  }

  /** Say who has it, and the newest values. */
  label(): void {
    const { metric, pools, current } = this._model;
    const { uuid } = this._gpu;
    const reading = pools.telemetry.gpu(uuid);
    if (this._revision !== this._model.poolsRevision) {
      this._revision = this._model.poolsRevision;
      this._seats = seatsOn(uuid, pools.pools.values(), current.pool);
    }
    const ranks = this._seats.map(({ rank }) => rank);
    if (ranks.length) {
      this._who.setFor(ranks.join(), () =>
        this._trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks))
      );
    } else {
      this._who.setFor('', () => '');
      this._who.set(
        sayLeaseholder(
          reading,
          [],
          { pools: pools.pools, own: current.pool },
          this._trans
        )
      );
    }
    const { memory_used } = reading.values;
    const used =
      typeof memory_used === 'number' ? formatUsed(memory_used) : '–';
    this._memory = `${used} / ${this._total}`;
    this._topValue = topOf(metric, this._gpu, reading.values);
    this._top.setFor(`${metric} ${this._topValue}`, () =>
      formatTop(metric, this._topValue, this._trans)
    );
    this._colour.set(
      this._rank === undefined
        ? 'transparent'
        : `var(--jp-dist-rank-${colourOf(this._rank)})`
    );
    this._findWords();
    this._latest = this._format(this._values.at(-1) ?? null);
    this._label.set(
      this._words.replace('%1', this._latest).replace('%2', this._memory)
    );
  }

  /** The value at a cursor that stands `x` pixels from the left, or else the newest. */
  showValue(cursor: { index: number; x: number } | null): void {
    const value = cursor && (this._values[cursor.index] ?? null);
    this._value = cursor ? this._format(value) : this._latest;
    hide(this._dot, value === null);
    if (cursor && value !== null) {
      const share = Math.min(1, Math.max(0, value / this._topValue));
      this._dot.style.left = `${cursor.x}px`;
      this._dot.style.top = `${100 * (1 - share)}%`;
    }
  }

  dispose(): void {
    this.node.remove();
  }

  private get _values() {
    const { recording, metric } = this._model;
    return recording.column(this._gpu.uuid, metric);
  }

  /** The rank whose colour it has. */
  private get _rank(): number | undefined {
    return this._seats[0]?.rank;
  }

  /** Translate what goes around a value, if that is not the same as before. */
  private _findWords(): void {
    const { metric } = this._model;
    const who = this._who.text;
    const key = `${metric} ${who}`;
    if (key !== this._key) {
      this._key = key;
      this._write = valueFormat(metric, this._trans);
      this._words = this._trans.__(
        '%1: %2 %3, memory %4',
        [this._name, who].filter(Boolean).join(', '),
        nameMetric(metric, this._trans),
        '%1',
        '%2'
      );
    }
  }

  private _format(value: number | null): string {
    return value === null ? '–' : this._write(value);
  }

  private readonly _name: string;
  private readonly _total: string;
  private readonly _label: Text;
  private readonly _who: Text;
  private readonly _top: Text;
  private readonly _colour: Text;
  private readonly _dot: HTMLElement;
  private _seats: ISeat[] = [];
  /** Of the pools, when the seats were found. */
  private _revision = -1;
  private _topValue = 1;
  private _latest = '';
  private _memory = '';
  private _value = '';
  /** What the next two are for. */
  private _key = '';
  private _words = '';
  private _write: (value: number) => string = String;
}
