import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { ICellHistory, ICellRun } from '../model/cells';
import type { IGpu } from '../model/gpuContract';
import { serverTime } from '../model/serverTime';
import type {
  Connection,
  ICurrentNotebook,
  IPoolsModel
} from '../model/tokens';
import { Records, type IPast, type Recording } from './recording';
import { selectCells, selectGpus, type IChoice } from './selection';
import { Waits } from './waits';

/** A stretch of time: from, to, in Unix seconds. */
export type View = readonly [number, number];

/** No view is shorter, in seconds. */
const CLOSEST = 5;

/**
 * What a timeline shows: which metric, which time, and the values.
 *
 * While hidden, it does nothing. While paused or zoomed, its values stay as they are.
 */
export class TimelineModel {
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
  readonly changed = new Signal<this, void>(this);
  /** Emitted when it shows something else than before, not just newer values. */
  readonly optionsChanged = new Signal<this, void>(this);

  /** Change it by `choose`. */
  choice: IChoice = {
    metric: 'utilization',
    minutes: 15,
    selection: 'used',
    isOverlay: false,
    isFitted: false
  };

  choose(change: Partial<IChoice>): void {
    this.choice = { ...this.choice, ...change };
    if (change.minutes) {
      this._zoom = null;
      this._load();
    }
    this._emitOptions();
  }

  /** How far it reaches back, in seconds. */
  get span(): number {
    return this.choice.minutes * 60;
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

  /** Whether the user can see it. */
  get isShown(): boolean {
    return this._watching.length > 0;
  }

  set isShown(isShown: boolean) {
    if (isShown === this.isShown) {
      return;
    }
    const { telemetry, changed } = this.pools;
    if (isShown) {
      this._watching = [telemetry.watch('gpus'), telemetry.watch('cells')];
      telemetry.changed.connect(this._onTelemetry, this);
      changed.connect(this._onPools, this);
      this.cells.changed.connect(this._emit, this);
      this._keys = this._uuids();
      this._thaw();
    } else {
      this.waits.stop(telemetry.time ?? serverTime());
      this._watching.forEach(one => one.dispose());
      this._watching = [];
      telemetry.changed.disconnect(this._onTelemetry, this);
      changed.disconnect(this._onPools, this);
      this.cells.changed.disconnect(this._emit, this);
    }
  }

  get gpus(): readonly IGpu[] {
    const { allGpus, telemetry } = this.pools;
    const { selection } = this.choice;
    return selectGpus(selection, allGpus, this.current.pool, telemetry);
  }

  get runs(): readonly ICellRun[] {
    const { selection } = this.choice;
    return selectCells(selection, this.current.pool, this.cells);
  }

  get cells(): ICellHistory {
    return this.pools.telemetry.cells;
  }

  get recording(): Recording {
    return this._records.recording;
  }

  /** Why the history is missing, in a sentence. */
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
    const [begin, end] = this._whole;
    const width = Math.max(CLOSEST, to - from);
    if (width >= end - begin) {
      this.resetZoom();
      return;
    }
    if (!this._zoom) {
      // The view stays, also when time goes on.
      this._zoomedAt = end;
    }
    const start = Math.min(Math.max(from, begin), end - width);
    this._zoom = [start, start + width];
    this._emitOptions();
  }

  zoomBy(factor: number, towards: number): void {
    const [begin, end] = this.view;
    this.zoomTo(
      towards - (towards - begin) / factor,
      towards + (end - towards) / factor
    );
  }

  /** Move the view by a part of its width. */
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

  dispose(): void {
    this.isShown = false;
    this._records.dispose();
    Signal.clearData(this);
  }

  private get _end(): number {
    return this.recording.end ?? this.pools.telemetry.time ?? serverTime();
  }

  private get _whole(): View {
    const begin = this.now - this.span;
    const first = this.choice.isFitted ? this.recording.times[0] : undefined;
    const fitted = Math.max(begin, first ?? begin);
    return [Math.min(fitted, this.now - CLOSEST), this.now];
  }

  /** Ask the server for what it has missed, and go on. */
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
    if (this.isFollowing) {
      this._records.add();
      this._emit();
    }
  }

  private _onPools(): void {
    const keys = this._uuids();
    const { state } = this.pools.connection;
    const isBack = state === 'live' && this._connection !== 'live';
    this._connection = state;
    if (keys !== this._keys || (isBack && this.isFollowing)) {
      this._keys = keys;
      this._load();
      this.optionsChanged.emit();
    }
    this._emit();
  }

  private _uuids(): string {
    return this.pools.allGpus.map(({ uuid }) => uuid).join(' ');
  }

  private _emit(): void {
    this.changed.emit();
  }

  private _emitOptions(): void {
    this.optionsChanged.emit();
    this._emit();
  }

  private readonly _records: Records;
  private _watching: readonly IDisposable[] = [];
  private _pausedAt: number | null = null;
  private _zoom: View | null = null;
  /** The end of the whole when it was zoomed. */
  private _zoomedAt = 0;
  private _keys = '';
  private _connection: Connection['state'] = 'live';
}
