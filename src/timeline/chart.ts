import { trans } from '../model/trans';
import { CellStrip, type ICellStripOptions } from './cellStrip';
import { joinFacts } from '../words/format';
import type { IColours } from './colours';
import { Drawing } from './draw';
import { element } from '../ui/element';
import { nameMetric } from './metrics';
import type { TimelineModel } from './model';
import { Pointer } from './pointer';
import { Row } from './row';
import { formatClock, nearest, Scale } from './scale';
import {
  AXIS_HEIGHT,
  LABEL_WIDTH,
  LEGEND_LINE,
  fullHeight,
  stripHeight,
  withOneTop
} from './scene';
import type { IScene } from './scene';

/** The least and most height of a row, in the page's pixels. */
const [LOWEST, HIGHEST] = [62, 150];

/**
 * The curves of all GPUs, below a strip of cells and above an axis: a canvas, and on top of it elements
 * without a look that can be scrolled and clicked, and that screen readers read.
 */
export class Chart {
  constructor(
    parent: HTMLElement,
    private readonly _model: TimelineModel,
    options: Pick<ICellStripOptions, 'jump'> & { moved(): void }
  ) {
    this.node = element(parent, 'jp-dist-Timeline-chart');
    this._canvas = element(this.node, '', 'canvas');
    this._canvas.setAttribute('aria-hidden', 'true');
    this.body = element(this.node, 'jp-dist-Timeline-body');
    this.body.tabIndex = 0;
    this.body.setAttribute('role', 'group');
    this.body.setAttribute(
      'aria-label',
      trans.__(
        'GPU curves. Plus and minus zoom, arrow keys pan, Shift with arrow keys reads values, 0 resets the zoom.'
      )
    );
    const zoom = (from: number, to: number) => _model.zoomTo(from, to);
    this._stripNode = element(this.body, 'jp-dist-Timeline-strip');
    const chips = element(this._stripNode, 'jp-dist-Timeline-plot');
    this._strip = new CellStrip(chips, _model, {
      jump: options.jump,
      zoom
    });
    this._rowsNode = element(this.body, 'jp-dist-Timeline-rows');
    const layer = element(
      this._rowsNode,
      'jp-dist-Timeline-plot jp-mod-pointer'
    );
    this.pointer = new Pointer(layer, {
      timeAt: x => this._scale.timeAt(x * this._ratio),
      placeOf: time => this._scale.place(time) / this._ratio,
      zoom,
      reset: () => _model.resetZoom(),
      moved: options.moved
    });
  }

  readonly node: HTMLElement;
  /** It scrolls, and has the focus. */
  readonly body: HTMLElement;
  readonly pointer: Pointer;

  *draw(colours: IColours): Generator<void, void> {
    const { clientWidth, clientHeight, scrollTop } = this.body;
    if (!clientWidth) {
      return;
    }
    this._makeRows();
    const ratio = (this._ratio = window.devicePixelRatio);
    const plot = Math.max(1, clientWidth - LABEL_WIDTH);
    const label = Math.round(LABEL_WIDTH * ratio);
    const width = label + Math.max(1, Math.round(plot * ratio));
    const height = Math.round(clientHeight * ratio);
    this._scale = Scale.over(this._model.view, width - label);
    const { base, perPixel } = this._scale;
    this._strip.update(new Scale(base, perPixel * ratio), plot);
    this._layOut(clientHeight);
    if (this._canvas.width !== width || this._canvas.height !== height) {
      this._canvas.width = width;
      this._canvas.height = height;
      this._canvas.style.width = `${width / ratio}px`;
      this._canvas.style.height = `${height / ratio}px`;
    }
    const scrolled = Math.round(scrollTop * ratio);
    const scene = this._scene(colours, scrolled);
    const drawing = drawingOn(this._canvas, scene, colours);
    this._image = drawing && (yield* drawing.draw(this._image));
  }

  /** All rows, also those out of sight, as an image. */
  picture(colours: IColours): HTMLCanvasElement {
    const { choice, view } = this._model;
    const [begin, end] = view;
    const title = joinFacts([
      nameMetric(choice.metric),
      `${formatClock(begin, true)}–${formatClock(end, true)}`,
      new Date(end * 1000).toLocaleDateString()
    ]);
    const scene = { ...this._scene(colours, 0), title };
    const picture = document.createElement('canvas');
    picture.width = this._canvas.width;
    picture.height = fullHeight(scene);
    finish(drawingOn(picture, scene, colours)?.draw(null));
    return picture;
  }

  private _scene(colours: IColours, scrolled: number): IScene {
    const { x, time } = this.pointer;
    const { times } = this._model.recording;
    const cursor = x === null || time === undefined ? null : { x, time };
    const index = cursor && times.length ? nearest(times, cursor.time) : null;
    const { isOverlay } = this._model.choice;
    const rows = this._rows.map(row => row.update(colours, index));
    return {
      title: null,
      lanes: this._strip.lanes,
      chips: this._strip.chips,
      rows: isOverlay ? withOneTop(rows) : rows,
      now: this._model.isFollowing ? trans.__('now') : null,
      cursor,
      brush: this.pointer.brush,
      scale: this._scale,
      times,
      isOverlay,
      rowHeight: this._rowHeight,
      scrolled,
      ratio: this._ratio
    };
  }

  private _makeRows(): void {
    const { gpus } = this._model;
    const key = gpus.map(({ uuid }) => uuid).join(' ');
    if (key !== this._key) {
      this._key = key;
      this._rows.forEach(row => row.dispose());
      this._rows = gpus.map(gpu => new Row(this._rowsNode, gpu, this._model));
      this._layout = '';
    }
  }

  /** Make the elements on top of the canvas as high as what it shows. */
  private _layOut(height: number): void {
    const strip = stripHeight(this._strip.lanes.length);
    const { isOverlay } = this._model.choice;
    const layout = `${height} ${strip} ${this._ratio} ${isOverlay}`;
    if (layout === this._layout) {
      return;
    }
    this._layout = layout;
    const count = this._rows.length;
    const room = Math.floor((height - strip - AXIS_HEIGHT) / count);
    const row = isOverlay
      ? Math.max(LOWEST, height - strip - AXIS_HEIGHT, LEGEND_LINE * count + 8)
      : Math.min(HIGHEST, Math.max(LOWEST, room));
    this._rowHeight = Math.round(row * this._ratio);
    this._stripNode.style.height = `${strip}px`;
    const page = this._rowHeight / this._ratio;
    this._rowsNode.style.height = isOverlay ? `${page}px` : '';
    for (const { node } of this._rows) {
      node.style.height = `${isOverlay ? LEGEND_LINE : page}px`;
    }
  }

  private readonly _canvas: HTMLCanvasElement;
  private readonly _stripNode: HTMLElement;
  private readonly _rowsNode: HTMLElement;
  private readonly _strip: CellStrip;
  private _rows: Row[] = [];
  private _key = '';
  private _layout = '';
  /** In the screen's pixels. */
  private _scale = new Scale(0, 1);
  /** The screen's pixels in one of the page's. */
  private _ratio = 1;
  private _rowHeight = LOWEST;
  private _image: ImageData | null = null;
}

function drawingOn(
  canvas: HTMLCanvasElement,
  scene: IScene,
  colours: IColours
): Drawing | null {
  const ctx = canvas.getContext('2d', { alpha: false });
  return ctx && new Drawing(ctx, scene, colours);
}

export function finish(drawing: Iterator<void, unknown> | undefined): void {
  while (drawing && !drawing.next().done);
}
