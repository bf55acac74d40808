import { renderText } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime';

import type { JobLog } from '../../model/jobLog';

/** Pixels, as in the style sheet. */
const ROW = 18;
/** Rows drawn above and below what can be seen. */
const MARGIN = 20;
/** Characters of a line that are drawn. */
const LONGEST = 10_000;
/** Pixels from an end at which more is read. */
const NEAR = 600;

/**
 * The lines of a log in a box that scrolls. Only those that can be seen are in the page, and only those
 * near them in the browser.
 */
export class LogView {
  constructor(
    private readonly _log: JobLog,
    private readonly _sanitizer: IRenderMime.ISanitizer,
    label: string
  ) {
    this.node.className = 'jp-dist-JobLog';
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'log');
    this.node.setAttribute('aria-live', 'off');
    this.node.setAttribute('aria-label', label);
    this._all.className = 'jp-dist-JobLog-all';
    this._window.className = 'jp-dist-JobLog-window';
    this._all.append(this._window);
    this.node.append(this._all);
    this.node.addEventListener('scroll', this._onScroll);
    _log.changed.connect(this._onChanged, this);
    this._observer = new ResizeObserver(() => this._onChanged());
    this._observer.observe(this.node);
  }

  readonly node = document.createElement('div');

  /** Whether it stays at its end when lines are added. */
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

  /** Bring a line to the middle. */
  show(line: number): void {
    this._follows = false;
    this.node.scrollTop = Math.max(0, line * ROW - this.node.clientHeight / 2);
    this._draw();
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
  }

  private readonly _onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = this.node;
    // Lines that have come since then do not count as scrolled away from.
    if (Math.abs(scrollTop - this._top) >= 1) {
      this._top = scrollTop;
      this._follows =
        this._log.end >= this._log.size &&
        scrollTop + clientHeight >= scrollHeight - 2;
      if (scrollTop < NEAR && this._log.start > 0) {
        void this._log.earlier();
      } else if (
        scrollTop + clientHeight > scrollHeight - NEAR &&
        this._log.end < this._log.size
      ) {
        void this._log.later();
      }
    }
    this._draw();
  };

  private _draw(): void {
    const { lines, found } = this._log;
    const { scrollTop, clientHeight } = this.node;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const last = Math.min(
      lines.length,
      Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN
    );
    const drawn = new Map<number, HTMLElement>();
    for (let line = first; line < last; line++) {
      const text = lines[line];
      const known = this._drawn.get(line);
      const node = known?.dataset.text === text ? known : this._make(text);
      node.classList.toggle('jp-mod-found', line === found);
      node.style.top = `${line * ROW}px`;
      drawn.set(line, node);
    }
    // What is there already stays: it may be selected.
    const kept = new Set(drawn.values());
    for (const node of this._drawn.values()) {
      if (!kept.has(node)) {
        node.remove();
      }
    }
    for (const node of kept) {
      if (node.parentNode !== this._window) {
        this._window.append(node);
      }
    }
    this._drawn = drawn;
  }

  private _make(text: string): HTMLElement {
    const node = document.createElement('div');
    node.className = 'jp-dist-JobLog-row';
    node.dataset.text = text;
    const source = text.slice(0, LONGEST);
    if (source.includes('\x1b')) {
      void renderText({ host: node, sanitizer: this._sanitizer, source });
    } else {
      node.textContent = source;
    }
    return node;
  }

  private readonly _all = document.createElement('div');
  private readonly _window = document.createElement('div');
  private readonly _observer: ResizeObserver;
  private _drawn = new Map<number, HTMLElement>();
  private _lines: readonly string[] = [];
  private _top = 0;
  private _follows = true;
}
