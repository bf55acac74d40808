import { renderText, type IRenderMime } from '@jupyterlab/rendermime';

import type { JobLog } from '../../model/jobLog';
import { element } from '../../ui/element';

/** The height of a row in pixels, as in the style sheet. */
const ROW = 18;
/** Rows drawn above and below what can be seen. */
const MARGIN = 20;
const LONGEST = 10_000;
/** More is read if so few pixels are left. */
const NEAR = 600;

interface IRow {
  text: string;
  node: HTMLElement;
}

/** The lines of a log in a box that scrolls. Only visible lines are in the page. */
export class LogView {
  constructor(
    private readonly _log: JobLog,
    private readonly _sanitizer: IRenderMime.ISanitizer,
    label: string
  ) {
    this.node.className = 'jp-dist-JobLog';
    this.node.tabIndex = 0;
    // JupyterLab would take the arrow keys.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this.node.setAttribute('role', 'log');
    this.node.setAttribute('aria-live', 'off');
    this.node.setAttribute('aria-label', label);
    this.node.addEventListener('scroll', this._onScroll);
    _log.changed.connect(this._onChanged, this);
    this._observer = new ResizeObserver(() => this._onChanged());
    this._observer.observe(this.node);
  }

  readonly node = document.createElement('div');

  /** Whether it scrolls to its end when lines are added. */
  get follows(): boolean {
    return this._follows;
  }

  set follows(follows: boolean) {
    this._follows = follows;
    this._onChanged();
  }

  dispose(): void {
    this._log.changed.disconnect(this._onChanged, this);
    this._observer.disconnect();
    this.node.removeEventListener('scroll', this._onScroll);
    this.node.remove();
  }

  show(line: number): void {
    this._follows = false;
    this.node.scrollTop = Math.max(0, line * ROW - this.node.clientHeight / 2);
    this._top = this.node.scrollTop;
    this._draw();
    this._fill();
  }

  private _onChanged(): void {
    const { lines, shift } = this._log;
    this._all.style.height = `${lines.length * ROW}px`;
    if (this._follows) {
      this._top = Math.max(0, lines.length * ROW - this.node.clientHeight);
    } else if (shift && lines !== this._lines) {
      this._top += shift * ROW;
    }
    if (Math.abs(this.node.scrollTop - this._top) >= 1) {
      this.node.scrollTop = this._top;
    }
    this._lines = lines;
    this._draw();
    const { scrollHeight, clientHeight } = this.node;
    // Without a scroll bar, no scrolling loads more.
    if (scrollHeight <= clientHeight && !this._log.isFull) {
      this._fill();
    }
  }

  private readonly _onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = this.node;
    // New lines at the end do not count as scrolled away.
    if (Math.abs(scrollTop - this._top) >= 1) {
      this._top = scrollTop;
      this._follows =
        this._log.end >= this._log.size &&
        scrollTop + clientHeight >= scrollHeight - 2;
      this._readMore();
    }
    this._draw();
  };

  private _fill(): void {
    if (this.node.clientHeight && !this._log.error) {
      this._readMore();
    }
  }

  /** Read more before the shown lines end. */
  private _readMore(): void {
    const { start, end, size, isBusy } = this._log;
    const { scrollTop, clientHeight, scrollHeight } = this.node;
    const below = scrollHeight - clientHeight - scrollTop;
    if (!isBusy && scrollTop < NEAR && start > 0) {
      void this._log.earlier();
    } else if (!isBusy && below < NEAR && end < size) {
      void this._log.later();
    }
  }

  private _draw(): void {
    const { lines, found } = this._log;
    const { scrollTop, clientHeight } = this.node;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const last = Math.min(
      lines.length,
      Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN
    );
    const drawn = new Map<number, IRow>();
    for (let line = first; line < last; line++) {
      const text = lines[line];
      const known = this._drawn.get(line);
      // Known nodes are not replaced: they may be selected.
      const row = known?.text === text ? known : this._make(text);
      row.node.classList.toggle('jp-mod-found', line === found);
      row.node.style.top = `${line * ROW}px`;
      drawn.set(line, row);
    }
    for (const [line, { node }] of this._drawn) {
      if (drawn.get(line)?.node !== node) {
        node.remove();
      }
    }
    this._drawn = drawn;
  }

  private _make(text: string): IRow {
    const node = element(this._window, 'jp-dist-JobLog-row');
    const source = text.slice(0, LONGEST);
    if (source.includes('\x1b')) {
      // JupyterLab's style sheet colors only this class.
      node.classList.add('jp-RenderedText');
      void renderText({ host: node, sanitizer: this._sanitizer, source });
    } else {
      node.textContent = source;
    }
    return { text, node };
  }

  private readonly _all = element(this.node, 'jp-dist-JobLog-all');
  private readonly _window = element(this._all, 'jp-dist-JobLog-window');
  private readonly _observer: ResizeObserver;
  private _drawn = new Map<number, IRow>();
  private _lines: readonly string[] = [];
  private _top = 0;
  private _follows = true;
}
