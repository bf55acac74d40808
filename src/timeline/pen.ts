import type { IColours } from './colours';

export interface ITextStyle {
  weight?: 400 | 600;
  size?: number;
  colour?: string;
  align?: CanvasTextAlign;
  /** Longer text is cut off. */
  room?: number;
}

interface IPill {
  background: string;
  text: ITextStyle;
  height: number;
  margin: number;
}

/** Left edge, top, width and height. */
type Rect = [number, number, number, number];

export class Pen {
  constructor(
    readonly ctx: CanvasRenderingContext2D,
    /** The screen's pixels in one of the page's. */
    private readonly _ratio: number,
    readonly colours: IColours
  ) {
    ctx.textBaseline = 'middle';
  }

  /** From the page's pixels to the screen's. */
  px(pixels: number): number {
    return Math.round(pixels * this._ratio);
  }

  fill(colour: string, ...rect: Rect): void {
    this.ctx.fillStyle = colour;
    this.ctx.fillRect(...rect);
  }

  within(rect: Rect, draw: () => void): void {
    const font = this._font;
    this.ctx.save();
    this.ctx.beginPath();
    this.ctx.rect(...rect);
    this.ctx.clip();
    draw();
    this.ctx.restore();
    this._font = font;
  }

  text(words: string, x: number, middle: number, style: ITextStyle): void {
    const { room = Infinity } = style;
    let shown = words;
    let end = words.length;
    while (end > 0 && this.measure(shown, style) > room) {
      shown = `${words.slice(0, --end)}…`;
    }
    this.ctx.textAlign = style.align ?? 'left';
    this.ctx.fillStyle = style.colour ?? this.colours.text;
    this.ctx.fillText(shown, x, middle);
  }

  measure(words: string, { weight = 400, size = 12 }: ITextStyle): number {
    const font = `${weight} ${size * this._ratio}px ${this.colours.font}`;
    // Browsers parse it slowly.
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

  private _font = '';
}
