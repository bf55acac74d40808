import type { IThemeManager } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { IBandStripOptions } from './bandStrip';
import { canPaint } from './canvas';
import { readColours } from './colours';
import type { IColours } from './colours';
import { Curves } from './curves';
import { element, hide } from './element';
import { obeyKey } from './keys';
import type { TimelineModel } from './model';
import { sayNothing, sayTrouble } from './notes';
import type { INothing } from './notes';
import { startPainter } from './startPainter';

/** For a browser that has none. */
const NO_PAINTER = { obey: () => undefined, dispose: () => undefined };

/**
 * The curves of all GPUs, or why there are none; it draws only while it can be seen, once a frame
 * at most.
 */
export class Timeline extends Widget {
  constructor(
    readonly model: TimelineModel,
    private readonly _trans: TranslationBundle,
    private readonly _themes: IThemeManager | null,
    jump: IBandStripOptions['jump']
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
        'Curves of the GPUs. Plus and minus zoom, arrow keys move, with Shift they read values, 0 shows all.'
      )
    );
    if (!canPaint()) {
      this._failure = _trans.__(
        'The curves cannot be drawn: this browser has no OffscreenCanvas. Update the browser.'
      );
    }
    const painter = canPaint()
      ? startPainter(reason => {
          this._failure = _trans.__(
            'The curves cannot be drawn; reload the page. %1',
            reason
          );
          this._schedule();
        })
      : NO_PAINTER;
    this._curves = new Curves(this._body, model, _trans, painter, { jump });
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
      this._curves.dispose();
      this.model.dispose();
      super.dispose();
    }
  }

  /** All that is seen, as a picture. */
  picture(): HTMLCanvasElement {
    this._draw();
    return this._curves.picture(this._colours ?? readColours(this.node));
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
    this._curves.invalidate();
    this._schedule();
  }

  protected onActivateRequest(): void {
    // Whoever is in it already stays there.
    if (!this.node.contains(document.activeElement)) {
      this.node.focus();
    }
  }

  private readonly _onVisibility = () => {
    this.model.isShown = this.isVisible && !document.hidden;
    this._schedule();
  };

  private readonly _onScroll = () => {
    this._curves.scroll();
    this._schedule();
  };

  private _onTheme(): void {
    this._colours = null;
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

  private _draw(): void {
    const { pools } = this.model;
    const trouble = this._failure || sayTrouble(this.model, this._trans);
    if (this._note.textContent !== trouble) {
      this._note.textContent = trouble;
    }
    hide(this._note, !trouble);
    const nothing = sayNothing(pools, this._trans);
    hide(this._body, nothing !== null);
    hide(this._empty, nothing === null);
    if (nothing) {
      this._sayNothing(nothing);
      return;
    }
    const isStale =
      pools.connection.state === 'stale' ||
      (pools.telemetry.trouble?.since ?? null) !== null;
    // Toggling it costs also where it is so already.
    if (this.hasClass('jp-mod-stale') !== isStale) {
      this.toggleClass('jp-mod-stale', isStale);
    }
    this._colours ??= readColours(this.node);
    this._curves.draw(this._colours);
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
    const [begin, end] = this.model.view;
    const middle = this._curves.pointer.time ?? (begin + end) / 2;
    if (obeyKey(event, this.model, this._curves.pointer, middle)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  private readonly _note: HTMLElement;
  private readonly _empty: HTMLElement;
  private readonly _body: HTMLElement;
  private readonly _curves: Curves;
  /** Null until they are read anew. */
  private _colours: IColours | null = null;
  /** Why there is nothing, if there was nothing. */
  private _said = '';
  /** Why nothing can be drawn. */
  private _failure = '';
  private _frame = 0;
}
