import type { IThemeManager } from '@jupyterlab/apputils';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { ICellStripOptions } from './cellStrip';
import { Chart, finish } from './chart';
import { readColours, type IColours } from './colours';
import { element } from '../ui/element';
import { Fold } from './fold';
import { Legend } from './lanes';
import type { TimelineModel } from './model';
import { sayNothing, sayTrouble, type INothing } from './notes';

/** The factor by which a key zooms, and the part of the width by which it moves. */
const [ZOOM, MOVE] = [2, 0.25];
const STEP = 10;

/**
 * The curves of all GPUs, or why there are none.
 *
 * It draws only while it is visible, and in each frame only a part, so that no frame takes long.
 */
export class Timeline extends Widget {
  constructor(
    readonly model: TimelineModel,
    themes: IThemeManager | null,
    jump: ICellStripOptions['jump']
  ) {
    super();
    this.addClass('jp-dist-Timeline');
    this.node.tabIndex = -1;
    this._note.setAttribute('role', 'status');
    this._chart = new Chart(this.node, model, {
      jump,
      moved: () => this._schedule()
    });
    this._legend = new Legend(this.node, model);
    this._fold = new Fold(this.node, model);
    this.node.addEventListener('keydown', this._onKey);
    this._chart.body.addEventListener('scroll', () => this._schedule());
    document.addEventListener('visibilitychange', this._onVisibility);
    model.changed.connect(this._schedule, this);
    themes?.themeChanged.connect(this._onTheme, this);
  }

  dispose(): void {
    if (!this.isDisposed) {
      document.removeEventListener('visibilitychange', this._onVisibility);
      cancelAnimationFrame(this._frame);
      this.model.dispose();
      super.dispose();
    }
  }

  picture(): HTMLCanvasElement {
    this._drawing = null;
    finish(this._draw());
    return this._chart.picture(this._colours ?? readColours(this.node));
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
    this._schedule();
  }

  protected onActivateRequest(): void {
    // The focus stays where it is within the timeline.
    if (!this.node.contains(document.activeElement)) {
      this.node.focus();
    }
  }

  private readonly _onVisibility = () => {
    this.model.isShown = this.isVisible && !document.hidden;
    this._schedule();
  };

  private _onTheme(): void {
    this._colours = null;
    this._schedule();
  }

  private _schedule(): void {
    this._isOld = true;
    if (this.model.isShown && !this._frame) {
      this._frame = requestAnimationFrame(this._onFrame);
    }
  }

  private readonly _onFrame = (): void => {
    this._frame = 0;
    if (!this.model.isShown) {
      this._drawing = null;
      return;
    }
    if (!this._drawing) {
      this._isOld = false;
      this._drawing = this._draw();
    }
    if (this._drawing.next().done) {
      this._drawing = null;
    }
    if (this._drawing || this._isOld) {
      this._frame = requestAnimationFrame(this._onFrame);
    }
  };

  private *_draw(): Generator<void, void> {
    const { pools } = this.model;
    const trouble = sayTrouble(this.model);
    if (this._note.textContent !== trouble) {
      this._note.textContent = trouble;
    }
    this._note.hidden = !trouble;
    this._legend.update();
    this._fold.update();
    const nothing = sayNothing(pools);
    this._chart.node.hidden = nothing !== null;
    this._empty.hidden = nothing === null;
    if (nothing) {
      this._sayNothing(nothing);
      return;
    }
    const isStale =
      pools.connection.state === 'stale' ||
      (pools.telemetry.trouble?.since ?? null) !== null;
    this.toggleClass('jp-mod-stale', isStale);
    this._colours ??= readColours(this.node);
    yield* this._chart.draw(this._colours);
  }

  private _sayNothing({ title, more }: INothing): void {
    const text = [title, ...more].join('\n');
    if (text !== this._said) {
      this._said = text;
      this._empty.replaceChildren();
      element(this._empty, '', 'h2').textContent = title;
      more.forEach(line => {
        element(this._empty, '', 'p').textContent = line;
      });
    }
  }

  private readonly _onKey = (event: KeyboardEvent) => {
    const { ctrlKey, metaKey, altKey } = event;
    if (!ctrlKey && !metaKey && !altKey && this._obey(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  /** Do what a key says; answers whether it is one of ours. */
  private _obey({ key, shiftKey }: KeyboardEvent): boolean {
    const { model } = this;
    const { pointer } = this._chart;
    const [begin, end] = model.view;
    const middle = pointer.time ?? (begin + end) / 2;
    switch (key) {
      case '+':
      case '=':
        model.zoomBy(ZOOM, middle);
        return true;
      case '-':
        model.zoomBy(1 / ZOOM, middle);
        return true;
      case 'ArrowLeft':
      case 'ArrowRight': {
        const way = key === 'ArrowLeft' ? -1 : 1;
        if (shiftKey) {
          // The first press goes to the newest value.
          pointer.moveTo((pointer.x ?? Infinity) + way * STEP);
        } else {
          model.move(way * MOVE);
        }
        return true;
      }
      case '0':
      case 'Escape':
        pointer.moveTo(null);
        model.resetZoom();
        return true;
      default:
        return false;
    }
  }

  private readonly _note = element(this.node, 'jp-dist-Timeline-note');
  private readonly _empty = element(this.node, 'jp-dist-Timeline-empty');
  private readonly _chart: Chart;
  private readonly _legend: Legend;
  private readonly _fold: Fold;
  /** Null until they are read again. */
  private _colours: IColours | null = null;
  /** The text of `_empty`. */
  private _said = '';
  private _frame = 0;
  /** The drawing that goes on in the next frame. */
  private _drawing: Generator<void, void> | null = null;
  /** Whether something has changed since the drawing began. */
  private _isOld = false;
}
