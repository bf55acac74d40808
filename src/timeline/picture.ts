import type { TranslationBundle } from '@jupyterlab/translation';

import type { IColours } from './colours';
import { nameMetric } from './metrics';
import type { TimelineModel } from './model';
import type { Row } from './row';
import { formatClock } from './ticks';

const TITLE_HEIGHT = 34;
const MARGIN = 12;
const TEXT = 12;
const LINE = 17;

interface IParts {
  model: TimelineModel;
  rows: readonly Row[];
  bands: HTMLCanvasElement;
  axis: HTMLCanvasElement;
  /** CSS pixels. */
  labelWidth: number;
  colours: IColours;
  trans: TranslationBundle;
}

/**
 * Put the canvases of a timeline and their labels together, as sharp as they are on the screen.
 */
export function drawPicture(parts: IParts): HTMLCanvasElement {
  const { model, rows, bands, axis, labelWidth, colours, trans } = parts;
  const ratio = window.devicePixelRatio;
  const canvases = [bands, ...rows.map(({ chart }) => chart.canvas), axis];
  const picture = document.createElement('canvas');
  picture.width = bands.width + labelWidth * ratio;
  picture.height = canvases.reduce(
    (sum, { height }) => sum + height,
    TITLE_HEIGHT * ratio
  );
  const ctx = picture.getContext('2d');
  if (!ctx) {
    return picture;
  }
  ctx.fillStyle = colours.background;
  ctx.fillRect(0, 0, picture.width, picture.height);
  ctx.textBaseline = 'middle';
  const write = (
    text: string,
    x: number,
    y: number,
    colour: string,
    weight = 400
  ) => {
    ctx.fillStyle = colour;
    ctx.font = `${weight} ${TEXT * ratio}px ${colours.font}`;
    ctx.fillText(text, x * ratio, y);
  };

  const [begin, end] = model.view;
  const title = trans.__(
    '%1 · %2–%3 · %4',
    nameMetric(model.metric, trans),
    formatClock(begin, true),
    formatClock(end, true),
    new Date(end * 1000).toLocaleDateString()
  );
  write(title, MARGIN, (TITLE_HEIGHT / 2) * ratio, colours.text, 600);
  let top = TITLE_HEIGHT * ratio;
  canvases.forEach((canvas, index) => {
    ctx.fillStyle = colours.border;
    ctx.fillRect(0, top, picture.width, Math.max(1, Math.round(ratio)));
    ctx.drawImage(canvas, labelWidth * ratio, top);
    const row = rows[index - 1];
    write(
      row?.top ?? '',
      labelWidth + MARGIN / 2,
      top + (MARGIN - 2) * ratio,
      colours.quiet
    );
    row?.lines.forEach((line, number) => {
      const isHead = number < 2;
      // The name and the value are beside each other, the rest below.
      const y = top + (isHead ? LINE : LINE * number) * ratio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(0, top, (labelWidth - MARGIN / 2) * ratio, canvas.height);
      ctx.clip();
      ctx.textAlign = number === 1 ? 'right' : 'left';
      const x = number === 1 ? labelWidth - MARGIN : MARGIN;
      write(
        line,
        x,
        y,
        isHead ? colours.text : colours.quiet,
        isHead ? 600 : 400
      );
      ctx.restore();
    });
    top += canvas.height;
  });
  return picture;
}

/** Have the browser save a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has begun by then, and keeps what it needs.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
