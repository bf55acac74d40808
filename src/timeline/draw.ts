import type { IColours } from './colours';
import { fitLabel } from './chips';
import type { IChip } from './chips';
import { paintCurves } from './curves';
import type { ICurve, ICurves } from './curves';
import { formatClock, ticksIn } from './scale';
import type { ITick } from './scale';

/** The page's pixels, which the style sheet has too. */
export const LABEL_WIDTH = 148;
export const AXIS_HEIGHT = 24;
/** Of a lane of chips, and of a chip in it. */
export const [LANE, CHIP] = [24, 18];
const TITLE_HEIGHT = 34;
/** Beside a chip's label and between its parts. */
const CHIP_MARGIN = 6;
/** Beside the labels of the rows, and what is left of one for the name. */
const [MARGIN, LABEL_ROOM, NAME_ROOM] = [12, 125, 72];
/** The middle of a label's lines. */
const LINES = [16, 33, 50];
/** What an axis label needs, half of it, and `now`. */
const [TICK_ROOM, HALF, NOW] = [84, 28, 44];
/** Half the width of the cursor's clock. */
const CLOCK = 32;

/** Of all lanes, with the line below them. */
export function stripHeight(lanes: number): number {
  return lanes * LANE + 1;
}

/** What stands beside and on a curve. */
export interface IRowWords extends ICurve {
  name: string;
  value: string;
  who: string;
  memory: string;
  /** What the upper edge means. */
  topLabel: string;
  hasRank: boolean;
  /** The value at the cursor, if there is one. */
  pointed: number | null;
}

export interface ILabelledChip extends IChip {
  /** The most important first. */
  parts: readonly string[];
}

/** All that a timeline shows. */
export interface IScene extends Omit<ICurves, 'grid' | 'curves'> {
  /** Of a picture that is saved. */
  title: string | null;
  /** What the lanes of cells are called. */
  lanes: readonly string[];
  /** In the page's pixels. */
  chips: readonly ILabelledChip[];
  rows: readonly IRowWords[];
  /** What the right edge is called; null if that is not now. */
  now: string | null;
  /** The page's pixels from the curves' left edge. */
  cursor: { x: number; time: number } | null;
  brush: readonly [number, number] | null;
}

/** How high the canvas must be to show all of a scene, in the screen's own pixels. */
export function fullHeight(scene: IScene): number {
  const above = stripHeight(scene.lanes.length) + AXIS_HEIGHT;
  const title = scene.title === null ? 0 : TITLE_HEIGHT;
  return (
    Math.round((above + title) * scene.ratio) +
    scene.rows.length * scene.rowHeight
  );
}

interface IStyle {
  weight?: 400 | 600;
  size?: number;
  colour?: string;
  align?: CanvasTextAlign;
  /** What does not fit is left out. */
  room?: number;
}

/**
 * Draws a timeline on a canvas, as large as that is: in the page, and as a picture.
 *
 * Everything is rounded to the screen's own pixels; arguments are in the page's.
 */
export class Drawing {
  constructor(
    private readonly _ctx: CanvasRenderingContext2D,
    private readonly _scene: IScene,
    private readonly _colours: IColours
  ) {
    const { lanes, rows, rowHeight, title } = _scene;
    const { width, height } = _ctx.canvas;
    this._strip = title === null ? 0 : this._px(TITLE_HEIGHT);
    this._rows = this._strip + this._px(stripHeight(lanes.length));
    this._left = this._px(LABEL_WIDTH);
    this._width = Math.max(1, width - this._left);
    const room = height - this._rows - this._px(AXIS_HEIGHT);
    this._height = Math.max(1, Math.min(room, rows.length * rowHeight));
  }

  /** Draw all; the image is used again by the next drawing, if it fits. */
  draw(image: ImageData | null): ImageData {
    const { _ctx: ctx, _scene: scene, _colours: colours } = this;
    const { width, height } = ctx.canvas;
    ctx.textBaseline = 'middle';
    this._fill(colours.background, 0, 0, width, height);
    const pixels =
      image?.width === this._width && image.height === this._height
        ? image
        : ctx.createImageData(this._width, this._height);
    const ticks = ticksIn(scene.scale, -1, this._width, this._px(TICK_ROOM));
    const grid = ticks.map(({ time }) => time);
    const curves = { ...scene, curves: scene.rows, grid };
    paintCurves(ctx, pixels, [this._left, this._rows], curves, colours);
    this._within(0, this._rows, width, this._height, () => {
      scene.rows.forEach((row, index) => this._drawLabels(row, index));
      this._drawPointer();
    });
    this._drawStrip();
    this._drawAxis(ticks);
    if (scene.title !== null) {
      const middle = this._px(TITLE_HEIGHT / 2);
      this._text(scene.title, this._px(MARGIN), middle, { weight: 600 });
    }
    return pixels;
  }

  private _drawLabels(row: IRowWords, index: number): void {
    const { _scene: scene, _colours: colours } = this;
    const top = this._rows + index * scene.rowHeight - scene.scrolled;
    if (top + scene.rowHeight < this._rows || top > this._end) {
      return;
    }
    const quiet = { colour: colours.quiet, room: this._px(LABEL_ROOM) };
    const [first, second, third] = LINES.map(line => top + this._px(line));
    const left = this._px(MARGIN);
    const { line } = row.colours;
    if (row.hasRank) {
      this._fill(line, 0, top, this._px(3), scene.rowHeight);
    }
    this._fill(colours.border, 0, top + scene.rowHeight - 1, this._left, 1);
    const room = this._px(NAME_ROOM);
    this._text(row.name, left, first, { weight: 600, room });
    const right = this._px(MARGIN + LABEL_ROOM);
    this._text(row.value, right, first, { weight: 600, align: 'right' });
    this._text(row.who, left, second, quiet);
    this._text(row.memory, left, third, quiet);
    this._fill(colours.border, this._left - 1, top, 1, scene.rowHeight);
    this._pill(row.topLabel, this._left + this._px(2), top + this._px(2), {
      background: colours.veil,
      text: { size: 10, colour: colours.quiet },
      height: this._px(14),
      margin: this._px(4)
    });
  }

  private _drawPointer(): void {
    const { _ctx: ctx, _scene: scene, _colours: colours } = this;
    const { cursor, brush, rowHeight, scrolled } = scene;
    if (brush) {
      const [from, to] = brush.map(x => this._left + this._px(x));
      this._fill(colours.brush, from, this._rows, to - from, this._height);
      this._fill(colours.brand, from, this._rows, 1, this._height);
      this._fill(colours.brand, to, this._rows, 1, this._height);
    }
    if (!cursor) {
      return;
    }
    const x = this._left + this._px(cursor.x);
    const dash = this._px(3);
    for (let y = this._rows; y < this._end; y += 2 * dash) {
      this._fill(colours.cursor, x, y, 1, dash);
    }
    scene.rows.forEach(({ pointed, top }, row) => {
      if (pointed !== null) {
        const share = Math.min(1, Math.max(0, pointed / top));
        const bottom = this._rows + (row + 1) * rowHeight - 1 - scrolled;
        ctx.beginPath();
        ctx.arc(x, bottom - share * (rowHeight - 1), this._px(3), 0, 7);
        ctx.fillStyle = colours.text;
        ctx.fill();
        ctx.lineWidth = 1;
        ctx.strokeStyle = colours.background;
        ctx.stroke();
      }
    });
  }

  private _drawStrip(): void {
    const { _scene: scene, _colours: colours } = this;
    const { width } = this._ctx.canvas;
    const height = this._rows - this._strip;
    this._fill(colours.background, 0, this._strip, width, height);
    this._fill(colours.border, 0, this._rows - 1, width, 1);
    this._fill(colours.border, this._left - 1, this._strip, 1, height);
    scene.lanes.forEach((name, lane) => {
      const middle = this._strip + this._px((lane + 0.5) * LANE);
      this._text(name, this._px(MARGIN), middle, {
        colour: colours.quiet,
        room: this._px(LABEL_ROOM)
      });
    });
    this._within(this._left, this._strip, this._width, height, () =>
      scene.chips.forEach(chip => this._drawChip(chip))
    );
  }

  private _drawChip(chip: ILabelledChip): void {
    const { _ctx: ctx, _colours: colours } = this;
    const left = this._left + this._px(chip.left);
    const width = this._left + this._px(chip.right) - left;
    const top = this._strip + this._px(chip.lane * LANE + (LANE - CHIP) / 2);
    ctx.beginPath();
    ctx.roundRect(left, top, width, this._px(CHIP), Math.min(3, width / 2));
    ctx.fillStyle = colours.chip;
    ctx.fill();
    if (chip.isRunning) {
      ctx.lineWidth = 1;
      ctx.strokeStyle = colours.brand;
      ctx.stroke();
    }
    const margin = this._px(CHIP_MARGIN);
    const style = (part: number): IStyle => ({
      weight: part === 0 ? 600 : 400,
      size: 11.5
    });
    const { parts } = chip;
    const room = this._px(chip.room - chip.left) - 2 * margin;
    const fitting = fitLabel(parts, room, margin, part => {
      this._setFont(style(parts.indexOf(part)));
      return ctx.measureText(part).width;
    });
    let x = left + margin;
    fitting.forEach((part, index) => {
      const middle = top + this._px(CHIP / 2);
      this._text(part, x, middle, style(index));
      x += ctx.measureText(part).width + margin;
    });
  }

  private _drawAxis(ticks: readonly ITick[]): void {
    const { _scene: scene, _colours: colours } = this;
    const { width } = this._ctx.canvas;
    const height = this._px(AXIS_HEIGHT);
    this._fill(colours.background, 0, this._end, width, height);
    const middle = this._end + this._px(AXIS_HEIGHT / 2);
    const { now, cursor } = scene;
    const [half, room] = [this._px(HALF), this._px(HALF + (now ? NOW : 0))];
    for (const { time, label } of ticks) {
      const x = Math.round(scene.scale.place(time));
      if (x >= half && x <= this._width - room) {
        this._text(label, this._left + x, middle, {
          colour: colours.quiet,
          align: 'center'
        });
      }
    }
    if (now) {
      this._text(now, width - this._px(6), middle, {
        colour: colours.quiet,
        align: 'right'
      });
    }
    if (cursor) {
      const right = this._width - this._px(CLOCK);
      const x = Math.max(this._px(CLOCK), Math.min(this._px(cursor.x), right));
      this._pill(
        formatClock(cursor.time, true),
        this._left + x,
        this._end + this._px(3),
        {
          background: colours.clock,
          text: { size: 11, colour: colours.clockText, align: 'center' },
          height: this._px(18),
          margin: this._px(6)
        }
      );
    }
  }

  /** Write something on a background with round corners. */
  private _pill(
    words: string,
    x: number,
    top: number,
    {
      background,
      text,
      height,
      margin
    }: { background: string; text: IStyle; height: number; margin: number }
  ): void {
    const { _ctx: ctx } = this;
    this._setFont(text);
    const width = Math.round(ctx.measureText(words).width) + 2 * margin;
    const isCentred = text.align === 'center';
    const left = isCentred ? Math.round(x - width / 2) : x;
    ctx.beginPath();
    ctx.roundRect(left, top, width, height, this._px(3));
    ctx.fillStyle = background;
    ctx.fill();
    const start = isCentred ? x : left + margin;
    this._text(words, start, top + height / 2, text);
  }

  private _text(words: string, x: number, middle: number, style: IStyle): void {
    const { _ctx: ctx } = this;
    this._setFont(style);
    ctx.textAlign = style.align ?? 'left';
    ctx.fillStyle = style.colour ?? this._colours.text;
    let shown = words;
    if (style.room !== undefined) {
      const fits = () => ctx.measureText(shown).width <= style.room!;
      for (let end = words.length; end > 0 && !fits();) {
        shown = `${words.slice(0, --end)}…`;
      }
    }
    ctx.fillText(shown, x, middle);
  }

  private _setFont({ weight = 400, size = 12 }: IStyle): void {
    const { ratio } = this._scene;
    this._ctx.font = `${weight} ${size * ratio}px ${this._colours.font}`;
  }

  private _fill(
    colour: string,
    left: number,
    top: number,
    width: number,
    height: number
  ): void {
    this._ctx.fillStyle = colour;
    this._ctx.fillRect(left, top, width, height);
  }

  /** Draw something within a rectangle, and not beyond. */
  private _within(
    left: number,
    top: number,
    width: number,
    height: number,
    draw: () => void
  ): void {
    this._ctx.save();
    this._ctx.beginPath();
    this._ctx.rect(left, top, width, height);
    this._ctx.clip();
    draw();
    this._ctx.restore();
  }

  /** The screen's own pixels. */
  private _px(pixels: number): number {
    return Math.round(pixels * this._scene.ratio);
  }

  /** Where the rows end. */
  private get _end(): number {
    return this._rows + this._height;
  }

  /** The upper edges of the strip and of the rows, the curves' left edge, and their size in sight. */
  private readonly _strip: number;
  private readonly _rows: number;
  private readonly _left: number;
  private readonly _width: number;
  private readonly _height: number;
}
