import { trans } from '../model/trans';

/**
 * A field that leaves of a long output the lines with certain words: the browser's search finds only
 * those that are in the page.
 */
export class LineFilter {
  constructor(changed: () => void) {
    this.node.className = 'jp-dist-LineFilter';
    // The notebook would take the keys.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._field.type = 'search';
    this._field.className = 'jp-mod-styled';
    this._field.placeholder = trans.__('Filter lines');
    this._field.setAttribute('aria-label', this._field.placeholder);
    this._field.addEventListener('input', changed);
    this._field.addEventListener('keydown', event => {
      if (event.key === 'Escape' && this.words) {
        event.stopPropagation();
        this._field.value = '';
        changed();
      }
    });
    this._count.setAttribute('role', 'status');
    this.node.append(this._field, this._count);
  }

  readonly node = document.createElement('div');

  /** What lines must have in them, in lower case; empty if all are shown. */
  get words(): string {
    return this._field.value.toLowerCase();
  }

  /** Say how many lines are left. */
  count(found: number, all: number): void {
    const text = this.words
      ? trans.__('%1 of %2 lines', found, all)
      : trans._n('%1 line', '%1 lines', all);
    // How many there are changes with all that is printed: nobody has asked for that.
    this._count.setAttribute('aria-live', this.words ? 'polite' : 'off');
    if (this._count.textContent !== text) {
      this._count.textContent = text;
    }
  }

  private readonly _field = document.createElement('input');
  private readonly _count = document.createElement('span');
}
