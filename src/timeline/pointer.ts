/** After so many pixels, a drag is a brush. */
const BRUSH = 4;

interface IPointerOptions {
  timeAt(x: number): number;
  placeOf(time: number): number;
  zoom(from: number, to: number): void;
  reset(): void;
  moved(): void;
}

/** The cursor, one for all curves, and the brush that zooms. */
export class Pointer {
  constructor(
    private readonly _layer: HTMLElement,
    private readonly _options: IPointerOptions
  ) {
    _layer.addEventListener('pointerdown', this._onDown);
    _layer.addEventListener('pointermove', event =>
      this.moveTo(this._placeOf(event))
    );
    _layer.addEventListener('pointerup', this._onUp);
    _layer.addEventListener('pointercancel', () => this._cancel());
    _layer.addEventListener('pointerleave', () => this.moveTo(null));
    _layer.addEventListener('dblclick', _options.reset);
  }

  /** The cursor's place in the page's pixels. */
  x: number | null = null;

  get time(): number | undefined {
    return this.x === null ? undefined : this._options.timeAt(this.x);
  }

  /** From where to where, in the page's pixels. */
  get brush(): readonly [number, number] | null {
    if (this._from === null || this.x === null) {
      return null;
    }
    const from = this._options.placeOf(this._from);
    return Math.abs(this.x - from) < BRUSH
      ? null
      : [Math.min(from, this.x), Math.max(from, this.x)];
  }

  moveTo(x: number | null): void {
    this.x =
      x === null ? null : Math.min(Math.max(x, 0), this._layer.clientWidth - 1);
    this._options.moved();
  }

  private readonly _onDown = (event: PointerEvent): void => {
    if (event.button === 0) {
      this._layer.setPointerCapture(event.pointerId);
      this._from = this._options.timeAt(this._placeOf(event));
    }
  };

  private readonly _onUp = (): void => {
    const { brush } = this;
    this._cancel();
    if (brush) {
      const [from, to] = brush.map(x => this._options.timeAt(x));
      this.moveTo(null);
      this._options.zoom(from, to);
    }
  };

  private _cancel(): void {
    this._from = null;
    this._options.moved();
  }

  private _placeOf({ clientX }: PointerEvent): number {
    return clientX - this._layer.getBoundingClientRect().left;
  }

  /** The time where the brush began. */
  private _from: number | null = null;
}
