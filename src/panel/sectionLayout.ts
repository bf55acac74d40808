import type { AccordionPanel } from '@lumino/widgets';

import type { Memory } from '../model/uiState';
import type { Section } from './section';
import { shareHeight } from './shareHeight';

/** The name under which it is remembered. */
const NAME = 'sections';

/** What is remembered of the sections. */
interface ILayout {
  /** By section: whether it is closed. */
  closed: boolean[];
  /** Their parts of the height as the user set them; null while they follow their contents. */
  sizes: number[] | null;
}

/**
 * Gives the sections the heights that their contents need, until the user sets others; remembers both.
 */
export class SectionLayout {
  constructor(
    private readonly _panel: AccordionPanel,
    private readonly _sections: readonly Section[],
    /** By section: its part of the height while there is too little for all. */
    private readonly _shares: readonly number[],
    private readonly _memory: Memory
  ) {
    const observer = new ResizeObserver(() => this._arrange());
    observer.observe(_panel.node);
    _sections.forEach(section =>
      section.contentResized.connect(() => this._arrange())
    );
    _panel.node.addEventListener(
      'pointerdown',
      ({ target, button }) => {
        // Another button moves nothing, and nobody would tell when it is let go.
        const isHandle =
          button === 0 &&
          target instanceof HTMLDivElement &&
          _panel.handles.includes(target);
        this._dragged = isHandle ? _panel.relativeSizes().join() : null;
      },
      true
    );
    _panel.handleMoved.connect(() => {
      const sizes = _panel.relativeSizes();
      if (sizes.join() !== this._dragged) {
        this._sizes = sizes;
        this._save();
      }
      this._dragged = null;
    });
    // Sizes are for the sections that were open then.
    _panel.expansionToggled.connect(() => {
      this._sizes = null;
      this._arrange();
      this._save();
    });
  }

  /** Open and close the sections as they were, or as they are at first. */
  async restore(closedAtFirst: readonly boolean[]): Promise<void> {
    await this._memory.ready;
    const saved = this._memory.get(NAME) as unknown as ILayout | undefined;
    const { closed, sizes } = saved ?? { closed: closedAtFirst, sizes: null };
    this._isRestoring = true;
    this._sections.forEach((_, index) =>
      closed[index] ? this._panel.collapse(index) : this._panel.expand(index)
    );
    this._isRestoring = false;
    this._sizes = sizes?.length === this._sections.length ? sizes : null;
    this._arrange();
  }

  private _arrange(): void {
    const { node, titleSpace, spacing } = this._panel;
    const open = this._sections.filter(({ isHidden }) => !isHidden).length;
    const space =
      node.clientHeight -
      this._sections.length * titleSpace -
      Math.max(0, open - 1) * spacing;
    // Contents change while a handle is dragged: that is no time to move it.
    if (space <= 0 || this._dragged !== null) {
      return;
    }
    const heights =
      this._sizes ??
      shareHeight(
        this._sections.map(({ isHidden, contentHeight }) =>
          isHidden ? null : contentHeight
        ),
        this._shares,
        space
      );
    const now = this._panel.relativeSizes();
    const total = heights.reduce((sum, height) => sum + height, 0);
    if (
      total > 0 &&
      heights.some((height, i) => Math.abs(height / total - now[i]) > 0.001)
    ) {
      this._panel.setRelativeSizes([...heights]);
    }
  }

  private _save(): void {
    if (!this._isRestoring) {
      const closed = this._sections.map(({ isHidden }) => isHidden);
      this._memory.set(NAME, { closed, sizes: this._sizes });
    }
  }

  private _sizes: number[] | null = null;
  private _isRestoring = false;
  /** The sizes before a handle was pressed, while it is. */
  private _dragged: string | null = null;
}
