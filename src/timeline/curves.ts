import type { TranslationBundle } from '@jupyterlab/translation';

import { Axis, labelsIn } from './axis';
import { BandStrip } from './bandStrip';
import type { IBandStripOptions } from './bandStrip';
import type { IColours } from './colours';
import { element, hide } from './element';
import type { TimelineModel } from './model';
import type { IScene, Stretch } from './paint';
import type { IPainter } from './painter';
import { drawPicture } from './picture';
import { Pointer } from './pointer';
import { Row } from './row';
import { nearest, Scale } from './scale';
import {
  AXIS_HEIGHT,
  HIGHEST,
  LABEL_WIDTH,
  LOWEST,
  stripHeight
} from './sizes';
import { tickStep } from './ticks';
import { Tiles } from './tiles';
import { Values } from './values';

/**
 * Pixels by which everything moves at once. Until then curves grow into the room that is left, as a
 * browser looks at the whole page whenever something moves.
 */
const GRAIN = 6;

/**
 * The curves of all GPUs below one strip of cells and above one axis.
 *
 * While time goes on, what is drawn moves as a whole, and only the newest pixels are drawn.
 */
export class Curves {
  constructor(
    private readonly _body: HTMLElement,
    private readonly _model: TimelineModel,
    private readonly _trans: TranslationBundle,
    private readonly _painter: IPainter,
    options: Pick<IBandStripOptions, 'jump'>
  ) {
    const zoom = (from: number, to: number) => _model.zoomTo(from, to);
    const strip = this._addStrip('jp-mod-bands');
    this._stripNode = strip.node;
    strip.moving.setAttribute('role', 'group');
    strip.moving.setAttribute('aria-label', _trans.__('Cells on ranks'));
    this._strip = new BandStrip(strip.label, strip.moving, _model, _trans, {
      ...options,
      zoom
    });
    this._rowsNode = element(_body, 'jp-dist-Timeline-rows');
    const plots = element(this._rowsNode, 'jp-dist-Timeline-plots');
    const drawn = element(plots, 'jp-dist-Timeline-moving');
    this._tiles = new Tiles(drawn, _painter);
    this._values = new Values(this._rowsNode, _painter);
    const layer = element(this._rowsNode, 'jp-dist-Timeline-pointer');
    const axis = this._addStrip('jp-mod-axis');
    axis.node.setAttribute('aria-hidden', 'true');
    this._axis = new Axis(axis.moving);
    this._now = element(axis.plot, 'jp-dist-Timeline-now');
    this._now.textContent = _trans.__('now');
    this._moving = [strip.moving, drawn, axis.moving];
    this.pointer = new Pointer(layer, axis.plot, {
      timeAt: x => this._scale.timeAt(this._from + x),
      placeOf: time => this._scale.place(time) - this._from,
      zoom,
      reset: () => _model.resetZoom(),
      moved: () => this._scheduleValues()
    });
  }

  readonly pointer: Pointer;

  dispose(): void {
    cancelAnimationFrame(this._frame);
    this._painter.dispose();
  }

  /** Show what it has been scrolled to. */
  scroll(): void {
    this._scrolled = this._body.scrollTop;
  }

  /** Take the sizes anew before it is drawn the next time. */
  invalidate(): void {
    this._isLaidOut = false;
  }

  draw(colours: IColours): void {
    this._makeRows();
    if (!this._isLaidOut) {
      this._layOut();
    }
    this._rows.forEach(row => row.label());
    this._model.grain = (GRAIN * this._model.span) / this._width;
    const isNew = this._renew(colours);
    const { view } = this._model;
    const from = Math.round(this._scale.place(view[0]));
    const isMoved = from !== this._from;
    this._from = from;
    const pixels: Stretch = [from, from + this._width];
    this._strip.draw(this._scale, pixels, colours);
    if (this._strip.lanes.length !== this._lanes) {
      this._lanes = this._strip.lanes.length;
      // There is another room for the rows, so they are drawn anew.
      this._isLaidOut = false;
      this._look = '';
      this.draw(colours);
      return;
    }
    const changed = this._model.takeChanged();
    const { end } = this._model.recording;
    if (isNew || isMoved || changed < Infinity || end !== this._drawnEnd) {
      this._drawnEnd = end;
      this._tiles.draw(
        this._scene(colours),
        pixels,
        this._seenRows,
        this._scale.place(Math.min(changed, this._drawnTo)) - 2
      );
      this._drawnTo = this._model.recording.times.at(-2) ?? -Infinity;
    }
    const { isFollowing } = this._model;
    if (isNew || isMoved || isFollowing === this._now.hidden) {
      hide(this._now, !isFollowing);
      this._drawAxis();
    }
    if (isNew || isMoved) {
      const move = `translateX(${-from}px)`;
      this._moving.forEach(node => (node.style.transform = move));
    }
    this._showValues();
  }

  /** All that is seen and what is scrolled away, as a picture. */
  picture(colours: IColours): HTMLCanvasElement {
    return drawPicture({
      model: this._model,
      rows: this._rows,
      strip: this._strip,
      scene: this._scene(colours),
      colours,
      from: this._from,
      width: this._width,
      trans: this._trans
    });
  }

  private _addStrip(kind: string) {
    const node = element(this._body, `jp-dist-TimelineRow ${kind}`);
    const label = element(node, 'jp-dist-TimelineRow-label jp-dist-quiet');
    const plot = element(node, 'jp-dist-TimelineRow-plot');
    return {
      node,
      label,
      plot,
      moving: element(plot, 'jp-dist-Timeline-moving')
    };
  }

  /** Begin a new scale, if things look other than before, and not merely newer. */
  private _renew(colours: IColours): boolean {
    const { metric, view, recording } = this._model;
    const [begin, end] = view;
    const look = [
      metric,
      (end - begin).toFixed(3),
      this._width,
      this._rowHeight,
      window.devicePixelRatio,
      this._seenRows,
      ...this._rows.map(row => row.look)
    ].join();
    if (
      look === this._look &&
      recording === this._recording &&
      colours === this._colours
    ) {
      return false;
    }
    this._look = look;
    this._recording = recording;
    this._colours = colours;
    this._scale = new Scale(begin, (end - begin) / this._width);
    this._tiles.clear();
    this._strip.clear();
    return true;
  }

  private _scene(colours: IColours): IScene {
    return {
      scale: this._scale,
      times: this._model.recording.times,
      curves: this._rows.map(row => row.curve(colours)),
      tickStep: tickStep(this._scale.perPixel),
      rowHeight: this._rowHeight,
      colours
    };
  }

  private _drawAxis(): void {
    const { isFollowing } = this._model;
    const step = tickStep(this._scale.perPixel);
    this._axis.draw(
      labelsIn(this._scale, step, this._from, this._width, isFollowing),
      this._scale
    );
  }

  /** The rows that are not scrolled away; asking the browser for it each time would take long. */
  private get _seenRows(): Stretch {
    const first = Math.floor(this._scrolled / this._rowHeight);
    const count = Math.ceil(this._height / this._rowHeight) + 1;
    return [first, Math.min(this._rows.length, first + count)];
  }

  private _makeRows(): void {
    const { gpus } = this._model;
    const key = gpus.map(({ uuid }) => uuid).join(' ');
    if (key === this._key) {
      return;
    }
    this._key = key;
    this._rows.forEach(row => row.dispose());
    this._rows = gpus.map(
      gpu => new Row(this._rowsNode, gpu, this._model, this._trans)
    );
    this._isLaidOut = false;
  }

  private _layOut(): void {
    const { clientWidth, clientHeight, scrollTop } = this._body;
    this._height = clientHeight;
    this._scrolled = scrollTop;
    this._width = Math.max(1, clientWidth - LABEL_WIDTH);
    const room = clientHeight - stripHeight(this._lanes) - AXIS_HEIGHT;
    this._rowHeight = Math.min(
      HIGHEST,
      Math.max(LOWEST, Math.floor(room / this._rows.length))
    );
    this._stripNode.style.height = `${stripHeight(this._lanes)}px`;
    for (const { node } of this._rows) {
      node.style.height = `${this._rowHeight}px`;
    }
    this._values.resize(this._rows.length, this._rowHeight);
    this._isLaidOut = clientWidth > 0;
  }

  private _scheduleValues(): void {
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._showValues();
    });
  }

  private _showValues(): void {
    const { x, time } = this.pointer;
    const { times } = this._model.recording;
    const cursor =
      x === null || time === undefined || !times.length
        ? null
        : { index: nearest(times, time), x };
    this._rows.forEach(row => row.showValue(cursor));
    if (this._colours) {
      this._values.draw(this._rows, this._colours);
    }
    this.pointer.refresh();
  }

  private readonly _stripNode: HTMLElement;
  private readonly _rowsNode: HTMLElement;
  private readonly _now: HTMLElement;
  private readonly _moving: readonly HTMLElement[];
  private readonly _strip: BandStrip;
  private readonly _tiles: Tiles;
  private readonly _axis: Axis;
  private readonly _values: Values;
  private _rows: Row[] = [];
  /** The GPUs that the rows are of. */
  private _key = '';
  private _scale = new Scale(0, 1);
  /** The pixel of the scale at the left edge. */
  private _from = 0;
  private _look = '';
  private _recording: TimelineModel['recording'] | null = null;
  private _colours: IColours | null = null;
  /** Unix seconds: values after that may be others by now. */
  private _drawnTo = -Infinity;
  /** The newest value that is drawn. */
  private _drawnEnd: number | null = null;
  private _lanes = 1;
  private _isLaidOut = false;
  private _width = 1;
  private _height = 1;
  private _scrolled = 0;
  private _rowHeight = LOWEST;
  private _frame = 0;
}
