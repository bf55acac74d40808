import type { TranslationBundle } from '@jupyterlab/translation';

import { labelsIn } from './axis';
import { chipFont } from './bandStrip';
import type { BandStrip } from './bandStrip';
import { nameMetric } from './metrics';
import type { IColours } from './colours';
import type { TimelineModel } from './model';
import { paint } from './paint';
import type { IScene } from './paint';
import type { Row } from './row';
import {
  AXIS_HEIGHT,
  CHIP,
  CHIP_MARGIN,
  LABEL_WIDTH,
  LANE,
  stripHeight,
  TEXT
} from './sizes';
import { formatClock } from './ticks';

const TITLE_HEIGHT = 34;
const MARGIN = 12;
const LINE = 17;

interface IParts {
  model: TimelineModel;
  rows: readonly Row[];
  strip: BandStrip;
  scene: IScene;
  colours: IColours;
  /** Pixels of the scale: the left edge, and how many there are. */
  from: number;
  width: number;
  trans: TranslationBundle;
}

/**
 * Draw a timeline with its labels, as sharp as it is on the screen.
 */
export function drawPicture(parts: IParts): HTMLCanvasElement {
  const { rows, scene, strip, from, width, colours } = parts;
  const { rowHeight } = scene;
  const ratio = window.devicePixelRatio;
  const heights = [
    TITLE_HEIGHT,
    stripHeight(strip.lanes.length),
    rows.length * rowHeight
  ];
  const tops = heights.map((_, index) =>
    heights.slice(0, index + 1).reduce((sum, height) => sum + height)
  );
  const picture = document.createElement('canvas');
  picture.width = Math.round((LABEL_WIDTH + width) * ratio);
  picture.height = Math.round((tops[2] + AXIS_HEIGHT) * ratio);
  const ctx = picture.getContext('2d');
  if (!ctx) {
    return picture;
  }
  ctx.scale(ratio, ratio);
  ctx.fillStyle = colours.background;
  ctx.fillRect(0, 0, LABEL_WIDTH + width, tops[2] + AXIS_HEIGHT);
  ctx.textBaseline = 'middle';
  /** Draw something in a rectangle whose corner is the origin, and not beyond. */
  const at = (left: number, top: number, high: number, draw: () => void) => {
    ctx.save();
    ctx.translate(left, top);
    ctx.beginPath();
    ctx.rect(0, 0, left ? width : LABEL_WIDTH, high);
    ctx.clip();
    draw();
    ctx.restore();
  };
  drawTitle(ctx, parts);
  strip.lanes.forEach((name, lane) =>
    at(0, tops[0] + lane * LANE, LANE, () =>
      write(ctx, parts, name, MARGIN, LANE / 2, true)
    )
  );
  at(LABEL_WIDTH, tops[0], heights[1], () => drawChips(ctx, parts));
  at(LABEL_WIDTH, tops[1], heights[2], () =>
    paint(ctx, scene, from, [from, from + width], [0, rows.length])
  );
  rows.forEach((row, index) => {
    const top = tops[1] + index * rowHeight;
    at(0, top, rowHeight, () => drawLabel(ctx, row, parts));
    write(ctx, parts, row.top, LABEL_WIDTH + 6, top + 10, true);
  });
  at(LABEL_WIDTH, tops[2], AXIS_HEIGHT, () => drawAxis(ctx, parts));
  ctx.fillStyle = colours.border;
  ctx.fillRect(0, tops[0], LABEL_WIDTH + width, 1);
  ctx.fillRect(0, tops[1], LABEL_WIDTH + width, 1);
  ctx.fillRect(LABEL_WIDTH, tops[0], 1, tops[2] - tops[0]);
  return picture;
}

function write(
  ctx: CanvasRenderingContext2D,
  { colours }: IParts,
  text: string,
  x: number,
  y: number,
  isQuiet: boolean
): void {
  ctx.fillStyle = isQuiet ? colours.quiet : colours.text;
  ctx.font = `${isQuiet ? 400 : 600} ${TEXT}px ${colours.font}`;
  ctx.fillText(text, x, y);
}

function drawTitle(ctx: CanvasRenderingContext2D, parts: IParts): void {
  const { model, trans } = parts;
  const [begin, end] = model.view;
  const title = trans.__(
    '%1 · %2–%3 · %4',
    nameMetric(model.metric, trans),
    formatClock(begin, true),
    formatClock(end, true),
    new Date(end * 1000).toLocaleDateString()
  );
  write(ctx, parts, title, MARGIN, TITLE_HEIGHT / 2, false);
}

function drawChips(ctx: CanvasRenderingContext2D, parts: IParts): void {
  const { strip, from, colours } = parts;
  for (const chip of strip.chips) {
    const [left, top] = [
      chip.left - from,
      chip.lane * LANE + (LANE - CHIP) / 2
    ];
    const width = chip.right - chip.left;
    ctx.fillStyle = colours.chip;
    ctx.beginPath();
    ctx.roundRect(left, top + 2, width, CHIP, Math.min(3, width / 2));
    ctx.fill();
    if (chip.isRunning) {
      ctx.strokeStyle = colours.brand;
      ctx.stroke();
    }
    let x = left + CHIP_MARGIN;
    strip.label(chip, colours).forEach((part, index) => {
      ctx.font = chipFont(colours, index);
      ctx.fillStyle = colours.text;
      ctx.fillText(part, x, top + 2 + CHIP / 2);
      x += ctx.measureText(part).width + CHIP_MARGIN;
    });
  }
}

/** The name and the value are beside each other, the rest below. */
function drawLabel(
  ctx: CanvasRenderingContext2D,
  row: Row,
  parts: IParts
): void {
  const [name, value, ...more] = row.lines;
  write(ctx, parts, name, MARGIN, LINE, false);
  more.forEach((line, index) =>
    write(ctx, parts, line, MARGIN, (index + 2) * LINE, true)
  );
  ctx.textAlign = 'right';
  write(ctx, parts, value, LABEL_WIDTH - MARGIN, LINE, false);
}

function drawAxis(ctx: CanvasRenderingContext2D, parts: IParts): void {
  const { model, scene, from, width, trans } = parts;
  const { scale, tickStep } = scene;
  const { isFollowing } = model;
  ctx.textAlign = 'center';
  for (const tick of labelsIn(scale, tickStep, from, width, isFollowing)) {
    const x = scale.place(tick.time) - from;
    write(ctx, parts, tick.label, x, AXIS_HEIGHT / 2, true);
  }
  if (isFollowing) {
    ctx.textAlign = 'right';
    write(ctx, parts, trans.__('now'), width - 6, AXIS_HEIGHT / 2, true);
  }
}
