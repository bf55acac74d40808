import uPlot from 'uplot';

import type { IStretch } from './bands';
import type { IColours, ICurveColours } from './colours';
import { traceCurve } from './curve';
import type { View } from './model';
import type { Column } from './recording';
import type { ITick } from './ticks';

/** Pixels of the mouse's way that are a brush and no click. */
const BRUSH = 4;

/** What a chart shows. */
export interface IFrame {
  times: readonly number[];
  values: Column;
  view: View;
  /** The value at the upper edge. */
  top: number;
  /** When the GPU's ranks were busy. */
  bands: readonly IStretch[];
  ticks: readonly ITick[];
  curve: ICurveColours;
  colours: IColours;
}

export interface IChartOptions {
  /** Charts with the same one have one cursor. */
  group: string;
  zoom(from: number, to: number): void;
  reset(): void;
  cursorMoved(): void;
}

/**
 * The curve of one GPU, drawn by uPlot on a canvas.
 */
export class Chart {
  constructor(node: HTMLElement, options: IChartOptions) {
    this._plot = new uPlot(
      {
        width: 1,
        height: 1,
        padding: [0, 0, 0, 0],
        legend: { show: false },
        axes: [{ show: false }, { show: false }],
        scales: {
          x: { time: false, auto: false, range: (_, min, max) => [min, max] },
          y: { auto: false, range: (_, min, max) => [min, max] }
        },
        series: [
          {},
          {
            // For the points of the cursor.
            stroke: () => this._frame?.curve.line ?? '',
            points: { show: false },
            // Its own way to draw cuts at half pixels, which takes browsers very long.
            paths: () => null
          }
        ],
        cursor: {
          y: false,
          sync: { key: options.group, setSeries: false },
          drag: { x: true, y: false, setScale: false, dist: BRUSH },
          points: { size: 7 },
          bind: {
            dblclick: () => () => {
              options.reset();
              return null;
            }
          }
        },
        hooks: {
          drawClear: [() => this._drawBehind()],
          draw: [() => this._drawCurve()],
          setCursor: [() => options.cursorMoved()],
          setSelect: [
            ({ select: { left, width } }) => {
              if (width > 0) {
                this._clearSelection();
                options.zoom(this._timeAt(left), this._timeAt(left + width));
              }
            }
          ]
        }
      },
      [[], []],
      node
    );
  }

  get canvas(): HTMLCanvasElement {
    return this._plot.ctx.canvas;
  }

  /** The value under the cursor, undefined while there is no cursor. */
  get pointed(): number | null | undefined {
    const { left } = this._plot.cursor;
    const { times, values } = this._frame ?? { times: [], values: [] };
    return left === undefined || left < 0 || !times.length
      ? undefined
      : values[this._plot.posToIdx(left)];
  }

  /** Where the cursor is, in Unix seconds; undefined while there is none. */
  get cursor(): number | undefined {
    const { left } = this._plot.cursor;
    return left === undefined || left < 0 ? undefined : this._timeAt(left);
  }

  resize(width: number, height: number): void {
    if (this._plot.width !== width || this._plot.height !== height) {
      this._plot.setSize({ width, height });
    }
  }

  draw(frame: IFrame): void {
    this._frame = frame;
    const { times, values, view, top } = frame;
    this._plot.batch(() => {
      this._plot.setData([times as number[], values], false);
      this._plot.setScale('x', { min: view[0], max: view[1] });
      this._plot.setScale('y', { min: 0, max: top });
    });
  }

  dispose(): void {
    this._plot.destroy();
  }

  private _timeAt(left: number): number {
    const [begin, end] = this._frame?.view ?? [0, 1];
    return begin + (left / this._plot.width) * (end - begin);
  }

  /** The cursor goes too: it would stand at another time in each chart. */
  private _clearSelection(): void {
    this._plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this._plot.setCursor({ left: -1, top: -1 }, false);
  }

  private _drawBehind(): void {
    const { ctx, bbox } = this._plot;
    if (!this._frame) {
      return;
    }
    const { view, bands, ticks, colours } = this._frame;
    const [begin, end] = view;
    const scale = bbox.width / (end - begin);
    const place = (time: number) => bbox.left + (time - begin) * scale;
    ctx.save();
    ctx.fillStyle = colours.band;
    // One path, so that ranks on the same GPU do not make it darker, nor cells side by side.
    ctx.beginPath();
    for (const band of bands) {
      const [from, to] = [Math.max(begin, band.start), band.end ?? end];
      if (to > begin && from < end) {
        const left = Math.round(place(from));
        const right = Math.max(left + 1, Math.round(place(Math.min(end, to))));
        ctx.rect(left, bbox.top, right - left, bbox.height);
      }
    }
    ctx.fill();
    ctx.fillStyle = colours.grid;
    const line = Math.max(1, Math.round(uPlot.pxRatio));
    for (const { time } of ticks) {
      ctx.fillRect(Math.round(place(time)), bbox.top, line, bbox.height);
    }
    ctx.restore();
  }

  private _drawCurve(): void {
    const { ctx } = this._plot;
    if (this._frame?.times.length) {
      const { line, area } = traceCurve(this._plot);
      ctx.save();
      ctx.fillStyle = this._frame.curve.area;
      ctx.fill(area);
      ctx.strokeStyle = this._frame.curve.line;
      ctx.lineJoin = 'round';
      // Browsers draw lines of one pixel many times faster than wider ones.
      ctx.lineWidth = Math.max(1, Math.floor(uPlot.pxRatio));
      ctx.stroke(line);
      ctx.restore();
    }
  }

  private readonly _plot: uPlot;
  private _frame: IFrame | null = null;
}
