import type { TranslationBundle } from '@jupyterlab/translation';

import { formatRanks, formatStopwatch } from '../panel/format';
import { endOf } from './bands';
import type { IBand } from './bands';
import type { IColours } from './colours';
import type { View } from './model';
import type { ITick } from './ticks';

const TEXT = 11.5;
/** Pixels beside and above a label. */
const MARGIN = 6;
/** Pixels that `now` needs at the end of the axis. */
const NOW = 44;

/** A canvas of its own above or below the charts. */
export class Strip {
  constructor(
    node: HTMLElement,
    private readonly _height: number
  ) {
    this.canvas = node.appendChild(document.createElement('canvas'));
    this.canvas.style.height = `${_height}px`;
  }

  readonly canvas: HTMLCanvasElement;

  resize(width: number): void {
    const ratio = window.devicePixelRatio;
    this._width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this._height * ratio);
    this.canvas.style.width = `${width}px`;
  }

  /** Labels below the charts; where time goes on, the last says so. */
  drawAxis(
    ticks: readonly ITick[],
    [begin, end]: View,
    now: string,
    colours: IColours
  ): void {
    this._draw(colours, ctx => {
      ctx.fillStyle = colours.quiet;
      const scale = this._width / (end - begin);
      const right = this._width - (now ? NOW : 0);
      for (const { time, label } of ticks) {
        const half = ctx.measureText(label).width / 2;
        const left = (time - begin) * scale - half;
        if (left > 0 && left + 2 * half < right) {
          ctx.fillText(label, left, this._height / 2);
        }
      }
      if (now) {
        const { width } = ctx.measureText(now);
        ctx.fillText(now, this._width - width - MARGIN, this._height / 2);
      }
    });
  }

  /** A chip for each time in which ranks were busy: `ranks 0–3 · 12 s`. */
  drawBands(
    bands: readonly IBand[],
    [begin, end]: View,
    colours: IColours,
    trans: TranslationBundle
  ): void {
    const scale = this._width / (end - begin);
    this._draw(colours, ctx => {
      const top = 4;
      const height = this._height - 2 * top;
      for (const band of bands) {
        const done = endOf(band);
        const [from, to] = [band.start, Math.min(done ?? end, end)];
        if (to <= begin || from >= end) {
          continue;
        }
        const left = Math.max((from - begin) * scale, -MARGIN);
        const width = Math.max(1, (to - begin) * scale - left);
        ctx.save();
        ctx.fillStyle = colours.chip;
        ctx.beginPath();
        ctx.roundRect(left, top, width, height, Math.min(3, width / 2));
        ctx.fill();
        if (done === null) {
          ctx.strokeStyle = colours.brand;
          ctx.stroke();
        }
        ctx.clip();
        const label = sayBand(band, end, trans);
        const start = Math.max(left, 0) + MARGIN;
        ctx.fillStyle = colours.text;
        // A word that is cut off would say something else.
        if (start + ctx.measureText(label).width < left + width) {
          ctx.fillText(label, start, this._height / 2);
        }
        ctx.restore();
      }
    });
  }

  private _draw(
    colours: IColours,
    draw: (ctx: CanvasRenderingContext2D) => void
  ): void {
    const ctx = this.canvas.getContext('2d');
    if (ctx) {
      const ratio = window.devicePixelRatio;
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, this._width, this._height);
      ctx.font = `${TEXT}px ${colours.font}`;
      ctx.textBaseline = 'middle';
      draw(ctx);
    }
  }

  private _width = 0;
}

/** Which ranks were busy for how long. */
export function sayBand(
  band: IBand,
  now: number,
  trans: TranslationBundle
): string {
  const ranks = band.stretches.map(({ rank }) => rank);
  return trans._n(
    'rank %2 · %3',
    'ranks %2 · %3',
    ranks.length,
    formatRanks(ranks),
    formatStopwatch((endOf(band) ?? now) - band.start, trans)
  );
}
