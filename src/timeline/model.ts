import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import type { ICellHistory, ICellRun } from '../model/cells';
import type { IGpu } from '../model/gpuContract';
import { serverTime } from '../model/serverTime';
import type {
  Connection,
  ICurrentNotebook,
  IPoolsModel
} from '../model/tokens';
import type { ChartMetric } from './metrics';
import type { Recording } from './recording';
import { Records, type IPast } from './records';
import { selectCells, selectGpus, type IChoice } from './selection';
import { CLOSEST, zoomWithin, type View } from './view';
import { Waits } from './waits';

const MINUTE = 60;

/**
 * What a timeline shows: which metric, of when, and the values.
 *
 * While it is not shown it does nothing. While it is paused or zoomed its values stay as they are.
 */
export class TimelineModel implements IDisposable {
  constructor(
    readonly pools: IPoolsModel,
    readonly current: ICurrentNotebook,
    past: IPast
  ) {
    this._records = new Records(pools, past, this.span);
    this._records.loaded.connect(this._emit, this);
  }

  /** When ranks waited in collectives. */
  readonly waits = new Waits();

  /** Emitted after any change. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when it shows something else than before, and not merely newer values. */
  get optionsChanged(): ISignal<this, void> {
    return this._optionsChanged;
  }

  get metric(): ChartMetric {
    return this._metric;
  }

  set metric(metric: ChartMetric) {
    this._metric = metric;
    this._emitOptions();
  }

  /** How far it reaches back. */
  get minutes(): number {
    return this._minutes;
  }

  set minutes(minutes: number) {
    this._minutes = minutes;
    this._zoom = null;
    this._load();
    this._emitOptions();
  }

  get span(): number {
    return this._minutes * MINUTE;
  }

  get isPaused(): boolean {
    return this._pausedAt !== null;
  }

  set isPaused(isPaused: boolean) {
    this._pausedAt = isPaused ? this._end : null;
    this._thaw();
  }

  get isZoomed(): boolean {
    return this._zoom !== null;
  }

  /** Whether new values are added. */
  get isFollowing(): boolean {
    return !this.isPaused && !this.isZoomed;
  }

  /** Whether somebody can see it. */
  get isShown(): boolean {
    return this._watching.length > 0;
  }

  set isShown(isShown: boolean) {
    if (isShown === this.isShown || this._isDisposed) {
      return;
    }
    const { telemetry, changed } = this.pools;
    if (isShown) {
      this._watching = [telemetry.watch('gpus'), telemetry.watch('cells')];
      telemetry.changed.connect(this._onTelemetry, this);
      changed.connect(this._onPools, this);
      this.cells.changed.connect(this._emit, this);
      this._keys = this._uuids();
      if (this.isFollowing) {
        this._load();
      }
      this._emitOptions();
    } else {
      this.waits.stop(telemetry.time ?? serverTime());
      this._watching.forEach(one => one.dispose());
      this._watching = [];
      telemetry.changed.disconnect(this._onTelemetry, this);
      changed.disconnect(this._onPools, this);
      this.cells.changed.disconnect(this._emit, this);
    }
  }

  /** Those that are shown. */
  get gpus(): readonly IGpu[] {
    const { allGpus, telemetry } = this.pools;
    const { selection } = this._choice;
    return selectGpus(selection, allGpus, this.current.pool, telemetry);
  }

  /** The cells that are shown. */
  get runs(): readonly ICellRun[] {
    const { selection } = this._choice;
    return selectCells(selection, this.current.pool, this.cells);
  }

  get choice(): IChoice {
    return this._choice;
  }

  choose(change: Partial<IChoice>): void {
    this._choice = { ...this._choice, ...change };
    this._emitOptions();
  }

  get cells(): ICellHistory {
    return this.pools.telemetry.cells;
  }

  get recording(): Recording {
    return this._records.recording;
  }

  /** Why there is no past, in a sentence. */
  get error(): string | null {
    return this._records.error;
  }

  /** The time at which it stands. */
  get now(): number {
    return this._pausedAt ?? (this._zoom ? this._zoomedAt : this._end);
  }

  get view(): View {
    return this._zoom ?? this._whole;
  }

  zoomTo(from: number, to: number): void {
    const zoom = zoomWithin(this._whole, from, to);
    if (!zoom) {
      this.resetZoom();
      return;
    }
    if (!this._zoom) {
      // What is looked at stays, also when time goes on.
      this._zoomedAt = this._whole[1];
    }
    this._zoom = zoom;
    this._emitOptions();
  }

  /** Zoom in (`factor` > 1) or out, towards a time. */
  zoomBy(factor: number, towards: number): void {
    const [begin, end] = this.view;
    this.zoomTo(
      towards - (towards - begin) / factor,
      towards + (end - towards) / factor
    );
  }

  /** Move what is seen by a part of its width. */
  move(part: number): void {
    if (this._zoom) {
      const [begin, end] = this._zoom;
      const by = part * (end - begin);
      this.zoomTo(begin + by, end + by);
    }
  }

  resetZoom(): void {
    if (this._zoom) {
      this._zoom = null;
      this._thaw();
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this.isShown = false;
    this._isDisposed = true;
    this._records.dispose();
    Signal.clearData(this);
  }

  private get _end(): number {
    return this.recording.end ?? this.pools.telemetry.time ?? serverTime();
  }

  private get _whole(): View {
    const begin = this.now - this.span;
    const first = this._choice.isFitted ? this.recording.times[0] : undefined;
    const fitted = Math.max(begin, first ?? begin);
    return [Math.min(fitted, this.now - CLOSEST), this.now];
  }

  /** Go on where it was left: what has happened since is asked of the server. */
  private _thaw(): void {
    if (this.isFollowing) {
      this._load();
    }
    this._emitOptions();
  }

  private _load(): void {
    if (this.isShown) {
      void this._records.load(this.span, this._pausedAt);
    }
  }

  private _onTelemetry(): void {
    this.waits.add(this.pools, this.pools.telemetry.time ?? serverTime());
    if (!this.isFollowing) {
      return;
    }
    this._records.add();
    this._changed.emit();
  }

  private _onPools(): void {
    const keys = this._uuids();
    const { state } = this.pools.connection;
    const isBack = state === 'live' && this._connection !== 'live';
    this._connection = state;
    if (keys !== this._keys || (isBack && this.isFollowing)) {
      this._keys = keys;
      this._load();
      this._optionsChanged.emit();
    }
    this._emit();
  }

  private _uuids(): string {
    return this.pools.allGpus.map(({ uuid }) => uuid).join(' ');
  }

  private _emit(): void {
    this._changed.emit();
  }

  private _emitOptions(): void {
    this._optionsChanged.emit();
    this._emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _optionsChanged = new Signal<this, void>(this);
  private _metric: ChartMetric = 'utilization';
  private _minutes = 15;
  private _choice: IChoice = {
    selection: 'used',
    isOverlay: false,
    isFitted: false
  };
  private readonly _records: Records;
  private _watching: readonly IDisposable[] = [];
  private _pausedAt: number | null = null;
  private _zoom: View | null = null;
  /** The end of the whole when it was zoomed. */
  private _zoomedAt = 0;
  private _keys = '';
  private _connection: Connection['state'] = 'live';
  private _isDisposed = false;
}
