import type { IColours } from './colours';

/** How a text looks. */
export interface ITextStyle {
  weight?: 400 | 600;
  size?: number;
  colour?: string;
  align?: CanvasTextAlign;
  /** What does not fit is left out. */
  room?: number;
}

/** A text on a background with round corners. */
interface IPill {
  background: string;
  text: ITextStyle;
  height: number;
  margin: number;
}

/** Draws shapes and texts on a canvas, at its whole pixels. */
export class Pen {
  constructor(
    readonly ctx: CanvasRenderingContext2D,
    /** How many of the screen's own pixels there are in one of the page's. */
    private readonly _ratio: number,
    private readonly _colours: Pick<IColours, 'text' | 'font'>
  ) {
    ctx.textBaseline = 'middle';
  }

  /** So many of the page's pixels, in the screen's own. */
  px(pixels: number): number {
    return Math.round(pixels * this._ratio);
  }

  fill(
    colour: string,
    left: number,
    top: number,
    width: number,
    height: number
  ): void {
    this.ctx.fillStyle = colour;
    this.ctx.fillRect(left, top, width, height);
  }

  /** Draw something within a rectangle, and not beyond. */
  within(
    left: number,
    top: number,
    width: number,
    height: number,
    draw: () => void
  ): void {
    const font = this._font;
    this.ctx.save();
    this.ctx.beginPath();
    this.ctx.rect(left, top, width, height);
    this.ctx.clip();
    draw();
    this.ctx.restore();
    this._font = font;
  }

  text(words: string, x: number, middle: number, style: ITextStyle): void {
    const { room = Infinity } = style;
    let shown = words;
    for (
      let end = words.length;
      end > 0 && this.measure(shown, style) > room;
    ) {
      shown = `${words.slice(0, --end)}…`;
    }
    this.ctx.textAlign = style.align ?? 'left';
    this.ctx.fillStyle = style.colour ?? this._colours.text;
    this.ctx.fillText(shown, x, middle);
  }

  /** How wide a text is. */
  measure(words: string, { weight = 400, size = 12 }: ITextStyle): number {
    const font = `${weight} ${size * this._ratio}px ${this._colours.font}`;
    // A browser takes long to understand it.
    if (font !== this._font) {
      this._font = font;
      this.ctx.font = font;
    }
    return this.ctx.measureText(words).width;
  }

  pill(
    words: string,
    x: number,
    top: number,
    { background, text, height, margin }: IPill
  ): void {
    const { ctx } = this;
    const width = Math.round(this.measure(words, text)) + 2 * margin;
    const isCentred = text.align === 'center';
    const left = isCentred ? Math.round(x - width / 2) : x;
    ctx.beginPath();
    ctx.roundRect(left, top, width, height, this.px(3));
    ctx.fillStyle = background;
    ctx.fill();
    const start = isCentred ? x : left + margin;
    this.text(words, start, top + height / 2, text);
  }

  /** The context's own, as far as we know. */
  private _font = '';
}
