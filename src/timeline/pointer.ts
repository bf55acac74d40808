import { element, hide } from './element';
import { formatClock } from './ticks';

/** Pixels of the mouse's way that are a brush and no click. */
const BRUSH = 4;
/** Half the pixels of the clock. */
const CLOCK = 32;

export interface IPointerOptions {
  timeAt(x: number): number;
  placeOf(time: number): number;
  zoom(from: number, to: number): void;
  reset(): void;
  moved(): void;
}

/**
 * The cursor, one for all curves, and the brush.
 */
export class Pointer {
  constructor(
    private readonly _layer: HTMLElement,
    axis: HTMLElement,
    private readonly _options: IPointerOptions
  ) {
    this._line = element(_layer, 'jp-dist-Timeline-cursor');
    this._brush = element(_layer, 'jp-dist-Timeline-brush');
    this._clock = element(axis, 'jp-dist-Timeline-clock');
    this._show();
    this._showBrush();
    _layer.addEventListener('pointerdown', this._onDown);
    _layer.addEventListener('pointermove', this._onMove);
    _layer.addEventListener('pointerup', this._onUp);
    _layer.addEventListener('pointercancel', this._onCancel);
    _layer.addEventListener('pointerleave', () => this.moveTo(null));
    _layer.addEventListener('dblclick', _options.reset);
  }

  /** Where it is, in Unix seconds; undefined while there is none. */
  get time(): number | undefined {
    return this.x === null ? undefined : this._options.timeAt(this.x);
  }

  /** Pixels; null while there is none. */
  get x(): number | null {
    return this._x;
  }

  moveTo(x: number | null): void {
    this._x =
      x === null ? null : Math.min(Math.max(x, 0), this._layer.clientWidth - 1);
    this._show();
    this._options.moved();
  }

  /** Show what time it stands at: while time goes on that changes. */
  refresh(): void {
    if (this.time !== undefined) {
      this._clock.textContent = formatClock(this.time, true);
    }
  }

  private _show(): void {
    hide(this._line, this._x === null);
    hide(this._clock, this._x === null);
    if (this._x !== null) {
      this._line.style.transform = `translateX(${this._x}px)`;
      const right = this._layer.clientWidth - CLOCK;
      const middle = Math.max(CLOCK, Math.min(this._x, right));
      this._clock.style.transform = `translateX(${middle}px) translateX(-50%)`;
      this.refresh();
    }
  }

  private readonly _onDown = (event: PointerEvent): void => {
    if (event.button === 0) {
      this._layer.setPointerCapture(event.pointerId);
      this._from = this._options.timeAt(this._placeOf(event));
    }
  };

  private readonly _onMove = (event: PointerEvent): void => {
    this.moveTo(this._placeOf(event));
    this._showBrush();
  };

  private readonly _onUp = (): void => {
    const [from, to] = [this._from, this.time];
    const isBrush = this._width >= BRUSH;
    this._onCancel();
    if (from !== null && to !== undefined && isBrush) {
      this.moveTo(null);
      this._options.zoom(Math.min(from, to), Math.max(from, to));
    }
  };

  private readonly _onCancel = (): void => {
    this._from = null;
    this._showBrush();
  };

  private _showBrush(): void {
    hide(this._brush, this._width < BRUSH);
    if (!this._brush.hidden && this._x !== null && this._from !== null) {
      const left = Math.min(this._x, this._options.placeOf(this._from));
      this._brush.style.left = `${left}px`;
      this._brush.style.width = `${this._width}px`;
    }
  }

  /** Of the brush. */
  private get _width(): number {
    return this._from === null || this._x === null
      ? 0
      : Math.abs(this._x - this._options.placeOf(this._from));
  }

  private _placeOf({ clientX }: PointerEvent): number {
    return clientX - this._layer.getBoundingClientRect().left;
  }

  private readonly _line: HTMLElement;
  private readonly _brush: HTMLElement;
  private readonly _clock: HTMLElement;
  private _x: number | null = null;
  /** Where the brush has begun, in Unix seconds. */
  private _from: number | null = null;
}
