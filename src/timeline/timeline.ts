import type { IThemeManager } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { readColours } from './colours';
import type { IColours } from './colours';
import { obeyKey } from './keys';
import type { TimelineModel } from './model';
import { sayNothing, sayTrouble } from './notes';
import { drawPicture } from './picture';
import { element, Row } from './row';
import { sayBand, Strip } from './strip';
import { formatClock, ticksIn } from './ticks';
import type { ITick } from './ticks';

const LABEL_WIDTH = 148;
const BANDS_HEIGHT = 28;
const AXIS_HEIGHT = 24;
/** A row is as high as there is room for, within these. */
const [LOWEST, HIGHEST] = [62, 150];
/** Pixels by which the curves move at once, so that most samples change the labels only. */
const GRAIN = 2;

let count = 0;

/**
 * The curves of all GPUs above one axis; it draws only while it can be seen, once a frame at most.
 */
export class Timeline extends Widget {
  constructor(
    readonly model: TimelineModel,
    private readonly _trans: TranslationBundle,
    private readonly _themes: IThemeManager | null
  ) {
    super();
    this.addClass('jp-dist-Timeline');
    this.node.tabIndex = -1;
    this._note = element(this.node, 'jp-dist-Timeline-note');
    this._note.setAttribute('role', 'status');
    this._empty = element(this.node, 'jp-dist-Timeline-empty');
    this._body = element(this.node, 'jp-dist-Timeline-body');
    this._body.tabIndex = 0;
    this._body.setAttribute('role', 'group');
    this._body.setAttribute(
      'aria-label',
      _trans.__(
        'Curves of the GPUs. Plus and minus zoom, arrow keys move, 0 shows all.'
      )
    );
    const [bands, bandsPlot] = this._addStrip('jp-mod-bands');
    bands.textContent = _trans.__('busy ranks');
    bandsPlot.setAttribute('role', 'img');
    this._bandsPlot = bandsPlot;
    this._bands = new Strip(bandsPlot, BANDS_HEIGHT);
    this._rowsNode = element(this._body, 'jp-dist-Timeline-rows');
    const [, axisPlot] = this._addStrip('jp-mod-axis');
    this._axis = new Strip(axisPlot, AXIS_HEIGHT);
    this._clock = element(axisPlot, 'jp-dist-Timeline-clock');
    axisPlot.setAttribute('aria-hidden', 'true');
    this.node.addEventListener('keydown', this._onKey);
    this._body.addEventListener('scroll', this._onScroll);
    document.addEventListener('visibilitychange', this._onVisibility);
    model.changed.connect(this._schedule, this);
    _themes?.themeChanged.connect(this._onTheme, this);
  }

  dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this._onVisibility);
      this._themes?.themeChanged.disconnect(this._onTheme, this);
      cancelAnimationFrame(this._frame);
      this._rows.forEach(row => row.dispose());
      this.model.dispose();
      super.dispose();
    }
  }

  /** All that is seen, as a picture. */
  picture(): HTMLCanvasElement {
    this._drawn = '';
    this._draw(true);
    return drawPicture({
      model: this.model,
      rows: this._rows,
      bands: this._bands.canvas,
      axis: this._axis.canvas,
      labelWidth: LABEL_WIDTH,
      colours: this._colours ?? readColours(this.node),
      trans: this._trans
    });
  }

  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._onVisibility();
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._onVisibility();
  }

  protected onBeforeHide(msg: Message): void {
    this.model.isShown = false;
    super.onBeforeHide(msg);
  }

  protected onBeforeDetach(msg: Message): void {
    this.model.isShown = false;
    super.onBeforeDetach(msg);
  }

  protected onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    this._isLaidOut = false;
    this._schedule();
  }

  protected onActivateRequest(): void {
    this.node.focus();
  }

  private _addStrip(kind: string): [HTMLElement, HTMLElement] {
    const node = element(this._body, `jp-dist-TimelineRow ${kind}`);
    return [
      element(node, 'jp-dist-TimelineRow-label jp-dist-quiet'),
      element(node, 'jp-dist-TimelineRow-plot')
    ];
  }

  private readonly _onVisibility = () => {
    this.model.isShown = this.isVisible && !document.hidden;
    this._schedule();
  };

  private readonly _onScroll = () => {
    this._drawn = '';
    this._schedule();
  };

  private _onTheme(): void {
    this._colours = null;
    this._drawn = '';
    this._schedule();
  }

  /** Draw when the browser does; it does not in a page that nobody sees. */
  private _schedule(): void {
    if (this.model.isShown && !this._frame) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        if (this.model.isShown) {
          this._draw();
        }
      });
    }
  }

  private _draw(isWhole = false): void {
    const { gpus, pools } = this.model;
    const trouble = sayTrouble(this.model, this._trans);
    if (this._note.textContent !== trouble) {
      this._note.textContent = trouble;
    }
    this._note.hidden = !trouble;
    const nothing = sayNothing(pools, this._trans);
    this._body.hidden = nothing !== null;
    this._empty.hidden = nothing === null;
    if (nothing) {
      const text = [nothing.title, ...nothing.more].join('\n');
      if (this._empty.textContent !== text.replaceAll('\n', '')) {
        this._empty.textContent = '';
        element(this._empty, '', 'h2').textContent = nothing.title;
        nothing.more.forEach(line => {
          element(this._empty, '', 'p').textContent = line;
        });
      }
      return;
    }
    const key = gpus.map(({ uuid }) => uuid).join(' ');
    if (key !== this._key) {
      this._key = key;
      this._makeRows();
    }
    this._colours ??= readColours(this.node);
    if (!this._isLaidOut) {
      this._layOut();
      this._drawn = '';
    }
    this.model.grain = (GRAIN * this.model.span) / this._width;
    const { view } = this.model;
    const isStale =
      pools.connection.state === 'stale' ||
      (pools.telemetry.trouble?.since ?? null) !== null;
    this.toggleClass('jp-mod-stale', isStale);
    const state = `${this.model.revision} ${view[1]}`;
    if (state !== this._drawn) {
      this._drawn = state;
      this._ticks = ticksIn(view[0], view[1], this._width);
      for (const row of isWhole ? this._rows : this._seenRows()) {
        row.draw(this._colours, this._ticks);
      }
      this._drawStrips(this._colours);
      this._showCursor();
    }
    this._rows.forEach(row => row.label());
  }

  /** The rows that are not scrolled away. */
  private _seenRows(): Row[] {
    const { scrollTop, clientHeight } = this._body;
    const first = Math.floor(scrollTop / this._rowHeight);
    const count = Math.ceil(clientHeight / this._rowHeight) + 1;
    return this._rows.slice(first, first + count);
  }

  private _drawStrips(colours: IColours): void {
    const { bands, view, isFollowing } = this.model;
    this._bands.drawBands(bands.all, view, colours, this._trans);
    const said = bands.all
      .filter(({ start }) => start < view[1])
      .slice(-1)
      .map(band => sayBand(band, view[1], this._trans));
    const label = this._trans.__(
      'When ranks were busy; last: %1',
      said[0] ?? this._trans.__('never')
    );
    if (this._bandsPlot.getAttribute('aria-label') !== label) {
      this._bandsPlot.setAttribute('aria-label', label);
    }
    this._axis.drawAxis(
      this._ticks,
      view,
      isFollowing ? this._trans.__('now') : '',
      colours
    );
  }

  private _makeRows(): void {
    this._rows.forEach(row => row.dispose());
    const options = {
      group: this._group,
      zoom: (from: number, to: number) => this.model.zoomTo(from, to),
      reset: () => this.model.resetZoom(),
      cursorMoved: () => this._onCursor()
    };
    this._rows = this.model.gpus.map(
      gpu => new Row(this._rowsNode, gpu, this.model, this._trans, options)
    );
    this._isLaidOut = false;
  }

  private _layOut(): void {
    const { clientWidth, clientHeight } = this._body;
    this._width = Math.max(1, clientWidth - LABEL_WIDTH);
    const room = clientHeight - BANDS_HEIGHT - AXIS_HEIGHT;
    const height = Math.min(
      HIGHEST,
      Math.max(LOWEST, Math.floor(room / this._rows.length))
    );
    this._rowHeight = height;
    this._bands.resize(this._width);
    this._axis.resize(this._width);
    for (const { node, chart } of this._rows) {
      node.style.height = `${height}px`;
      // The row's line takes one pixel.
      chart.resize(this._width, height - 1);
    }
    this._isLaidOut = clientWidth > 0;
  }

  /** Every chart tells of the cursor that they share: one look a frame is enough. */
  private _onCursor(): void {
    if (!this._cursorFrame) {
      this._cursorFrame = requestAnimationFrame(() => {
        this._cursorFrame = 0;
        if (!this.isDisposed) {
          this._rows.forEach(row => row.showValue());
          this._showCursor();
        }
      });
    }
  }

  private _showCursor(): void {
    const time = this._rows[0]?.chart.cursor;
    this._clock.hidden = time === undefined;
    if (time !== undefined) {
      const [begin, end] = this.model.view;
      this._clock.textContent = formatClock(time, true);
      const left = ((time - begin) / (end - begin)) * this._width;
      this._clock.style.transform = `translateX(${left}px) translateX(-50%)`;
    }
  }

  private readonly _onKey = (event: KeyboardEvent) => {
    const [begin, end] = this.model.view;
    const middle = this._rows[0]?.chart.cursor ?? (begin + end) / 2;
    if (obeyKey(event, this.model, middle)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  private readonly _note: HTMLElement;
  private readonly _empty: HTMLElement;
  private readonly _body: HTMLElement;
  private readonly _rowsNode: HTMLElement;
  private readonly _bandsPlot: HTMLElement;
  private readonly _clock: HTMLElement;
  private readonly _bands: Strip;
  private readonly _axis: Strip;
  private readonly _group = `jupyter-dist-timeline-${count++}`;
  private _rows: Row[] = [];
  /** The GPUs that the rows are of. */
  private _key = '';
  private _ticks: readonly ITick[] = [];
  /** Null until they are read anew. */
  private _colours: IColours | null = null;
  private _isLaidOut = false;
  /** What the curves were drawn of. */
  private _drawn = '';
  private _width = 1;
  private _rowHeight = LOWEST;
  private _frame = 0;
  private _cursorFrame = 0;
}
