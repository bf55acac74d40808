import { fitLabel } from './chips';
import type { IColours } from './colours';
import { paintCurves } from './curves';
import { Pen, type ITextStyle } from './pen';
import {
  drawFrame,
  drawLabels,
  drawLegend,
  LABEL_ROOM,
  MARGIN
} from './rowLabels';
import { formatClock, ticksIn, type ITick } from './scale';
import {
  AXIS_HEIGHT,
  CHIP,
  LABEL_WIDTH,
  LANE,
  rowCount,
  stripHeight,
  TITLE_HEIGHT
} from './scene';
import type { ILabelledChip, IScene } from './scene';

/** The number of rows that are drawn in a frame: 16 would take too long. */
const AT_ONCE = 8;
/** Beside a chip's label and between its parts, in the page's pixels. */
const CHIP_MARGIN = 6;
/** The widths of an axis label, half of it, and `now`. */
const [TICK_ROOM, HALF, NOW] = [84, 28, 44];
const CLOCK = 32;

export class Drawing {
  constructor(
    ctx: CanvasRenderingContext2D,
    private readonly _scene: IScene,
    private readonly _colours: IColours
  ) {
    const { lanes, rowHeight, title } = _scene;
    const { width, height } = ctx.canvas;
    this._pen = new Pen(ctx, _scene.ratio, _colours);
    this._strip = title === null ? 0 : this._px(TITLE_HEIGHT);
    this._rows = this._strip + this._px(stripHeight(lanes.length));
    this._left = this._px(LABEL_WIDTH);
    this._width = Math.max(1, width - this._left);
    const room = height - this._rows - this._px(AXIS_HEIGHT);
    this._height = Math.max(1, Math.min(room, rowCount(_scene) * rowHeight));
  }

  /** Draw in parts; answers an image that the next drawing may use again. */
  *draw(image: ImageData | null): Generator<void, ImageData> {
    const { _scene: scene, _width: width, _height: height } = this;
    const pixels =
      image?.width === width && image.height === height
        ? image
        : this._pen.ctx.createImageData(width, height);
    const ticks = ticksIn(scene.scale, -1, width, this._px(TICK_ROOM));
    const { rowHeight, scrolled } = scene;
    const first = Math.floor(scrolled / rowHeight);
    const stop = Math.ceil((scrolled + height) / rowHeight);
    for (let row = first; row < stop; row += AT_ONCE) {
      if (row > first) {
        yield;
      }
      this._drawRows(row, Math.min(row + AT_ONCE, stop), pixels, ticks);
    }
    this._drawStrip();
    this._drawAxis(ticks);
    return pixels;
  }

  private _drawRows(
    first: number,
    stop: number,
    pixels: ImageData,
    ticks: readonly ITick[]
  ): void {
    const { _scene: scene, _colours: colours, _pen: pen } = this;
    const { rows, rowHeight, scrolled, isOverlay } = scene;
    const curves = {
      ...scene,
      curves: isOverlay ? rows : rows.slice(first, stop),
      scrolled: scrolled - first * rowHeight,
      grid: ticks.map(({ time }) => time)
    };
    const corner = [this._left, this._rows] as const;
    const edges = paintCurves(pen.ctx, pixels, corner, curves, colours);
    const [above, below] = edges;
    const top = this._rows + above;
    pen.fill(colours.background, 0, top, this._left, below - above);
    pen.within([0, top, this._left + this._width, below - above], () => {
      if (isOverlay) {
        drawLegend(pen, rows, this._rows - scrolled);
      }
      for (let row = first; row < stop; row++) {
        const place = this._rows + row * rowHeight - scrolled;
        if (!isOverlay) {
          drawLabels(pen, rows[row], place, rowHeight);
        }
        drawFrame(pen, rows[row].topLabel, place, rowHeight);
      }
      this._drawPointer();
    });
  }

  private _drawPointer(): void {
    const { _scene: scene, _colours: colours, _pen: pen } = this;
    const { ctx } = pen;
    const { cursor, brush, rowHeight, scrolled } = scene;
    if (brush) {
      const [from, to] = brush.map(x => this._left + this._px(x));
      pen.fill(colours.brush, from, this._rows, to - from, this._height);
      pen.fill(colours.brand, from, this._rows, 1, this._height);
      pen.fill(colours.brand, to, this._rows, 1, this._height);
    }
    if (!cursor) {
      return;
    }
    const x = this._left + this._px(cursor.x);
    const dash = this._px(3);
    for (let y = this._rows; y < this._end; y += 2 * dash) {
      pen.fill(colours.cursor, x, y, 1, dash);
    }
    scene.rows.forEach(({ pointed, top }, index) => {
      const row = scene.isOverlay ? 0 : index;
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
    const { _scene: scene, _colours: colours, _pen: pen } = this;
    const { width } = pen.ctx.canvas;
    const height = this._rows - this._strip;
    pen.fill(colours.background, 0, 0, width, this._rows);
    pen.fill(colours.border, 0, this._rows - 1, width, 1);
    pen.fill(colours.border, this._left - 1, this._strip, 1, height);
    if (scene.title !== null) {
      const middle = this._px(TITLE_HEIGHT / 2);
      pen.text(scene.title, this._px(MARGIN), middle, { weight: 600 });
    }
    scene.lanes.forEach((name, lane) => {
      const middle = this._strip + this._px((lane + 0.5) * LANE);
      pen.text(name, this._px(MARGIN), middle, {
        colour: colours.quiet,
        room: this._px(LABEL_ROOM)
      });
    });
    pen.within([this._left, this._strip, this._width, height], () =>
      scene.chips.forEach(chip => this._drawChip(chip))
    );
  }

  private _drawChip(chip: ILabelledChip): void {
    const { _colours: colours, _pen: pen } = this;
    const { ctx } = pen;
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
    const style = (part: number): ITextStyle => ({
      weight: part === 0 ? 600 : 400,
      size: 11.5
    });
    const { parts } = chip;
    const measure = (part: string) =>
      pen.measure(part, style(parts.indexOf(part)));
    const room = this._px(chip.room - chip.left);
    const inner = Math.min(width, room) - 2 * margin;
    const inside = fitLabel(parts, inner, margin, measure);
    // A narrow chip has its label beside it, up to the next chip.
    const beside = room - width - margin;
    const shown = inside.length
      ? inside
      : fitLabel(parts, beside, margin, measure);
    let x = left + (inside.length ? margin : width + margin / 2);
    shown.forEach((part, index) => {
      pen.text(part, x, top + this._px(CHIP / 2), style(index));
      x += measure(part) + margin;
    });
  }

  private _drawAxis(ticks: readonly ITick[]): void {
    const { _scene: scene, _colours: colours, _pen: pen } = this;
    const { width, height } = pen.ctx.canvas;
    pen.fill(colours.background, 0, this._end, width, height - this._end);
    const middle = this._end + this._px(AXIS_HEIGHT / 2);
    const { now, cursor } = scene;
    const [half, room] = [this._px(HALF), this._px(HALF + (now ? NOW : 0))];
    for (const { time, label } of ticks) {
      const x = Math.round(scene.scale.place(time));
      if (x >= half && x <= this._width - room) {
        pen.text(label, this._left + x, middle, {
          colour: colours.quiet,
          align: 'center'
        });
      }
    }
    if (now) {
      pen.text(now, width - this._px(6), middle, {
        colour: colours.quiet,
        align: 'right'
      });
    }
    if (cursor) {
      const right = this._width - this._px(CLOCK);
      const x = Math.max(this._px(CLOCK), Math.min(this._px(cursor.x), right));
      pen.pill(
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

  private _px(pixels: number): number {
    return this._pen.px(pixels);
  }

  private get _end(): number {
    return this._rows + this._height;
  }

  private readonly _pen: Pen;
  /** In the screen's pixels: the tops of strip and rows; left edge and visible size of the curves. */
  private readonly _strip: number;
  private readonly _rows: number;
  private readonly _left: number;
  private readonly _width: number;
  private readonly _height: number;
}
