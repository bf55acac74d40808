import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IBand } from './bands';
import { sayBand, sayBands } from './bandWords';
import type { IBandWords } from './bandWords';
import { chipsIn, fitLabel } from './chips';
import type { IChip } from './chips';
import type { IColours } from './colours';
import { element } from './element';
import type { TimelineModel } from './model';
import type { Scale } from './scale';
import { CHIP, CHIP_MARGIN, LANE } from './sizes';

const TEXT = 11.5;
/** Seconds after which a running cell's words are written anew, where they do not show its time. */
const SELDOM = 5;

/** What a chip shows, when it was written last. */
interface IShown {
  node: HTMLButtonElement;
  key: string;
  chip: IChip;
  /** Whether there is room for how long it took. */
  hasTime: boolean;
}

export interface IBandStripOptions {
  /** Go to the cell. */
  jump(band: IBand): void;
  zoom(from: number, to: number): void;
}

/**
 * Which cell ran when, above the curves: chips that one can click, or walk along by arrow keys.
 */
export class BandStrip {
  constructor(
    private readonly _label: HTMLElement,
    private readonly _parent: HTMLElement,
    private readonly _model: TimelineModel,
    private readonly _trans: TranslationBundle,
    private readonly _options: IBandStripOptions
  ) {
    _parent.addEventListener('keydown', this._onKey);
  }

  /** What is shown, by lane and time. */
  get chips(): readonly IChip[] {
    return this._shown.map(({ chip }) => chip);
  }

  /** What its lanes are called: with several pools, each has its notebook's name. */
  get lanes(): readonly string[] {
    return this._lanes;
  }

  /** The parts of a chip's label that fit on it. */
  label(chip: IChip, colours: IColours): string[] {
    return this._fit(chip, this._say(chip).parts, colours);
  }

  draw(scale: Scale, view: readonly [number, number], colours: IColours): void {
    const { bands, now } = this._model;
    const chips = chipsIn(bands.all, scale, view);
    const before = new Map(
      this._shown.map(shown => [shown.chip.bands[0].id, shown])
    );
    this._shown = chips.map(chip => {
      const { id, start } = chip.bands[0];
      const shown = before.get(id) ?? this._make(chip);
      before.delete(id);
      shown.chip = chip;
      const { left, right, room, lane, bands, isRunning } = chip;
      // Those that are over are written once.
      const step = shown.hasTime ? 1 : SELDOM;
      const time = isRunning ? Math.floor((now - start) / step) : '';
      const ranks = bands.map(({ stretches }) => stretches.length).join();
      const key = `${left} ${right} ${room} ${lane} ${ranks} ${time}`;
      if (key !== shown.key) {
        shown.key = key;
        this._write(shown, colours);
      }
      return shown;
    });
    for (const { node } of before.values()) {
      node.remove();
    }
    this._nameLanes();
    if (!this._shown.some(({ node }) => node.tabIndex === 0)) {
      this._focusable(this._shown.at(-1)?.node);
    }
  }

  private _nameLanes(): void {
    const paths: string[] = [];
    for (const { lane, bands } of this.chips) {
      paths[lane] = bands[0].path;
    }
    const lanes =
      paths.length > 1
        ? paths.map(path => PathExt.basename(path))
        : [this._trans.__('cells')];
    if (lanes.join('\n') !== this._lanes.join('\n')) {
      this._label.replaceChildren();
      for (const name of lanes) {
        const node = element(this._label, '');
        node.textContent = node.title = name;
      }
    }
    this._lanes = lanes;
  }

  /** Have all labels written anew. */
  clear(): void {
    this._shown.forEach(shown => (shown.key = ''));
  }

  private _make(chip: IChip): IShown {
    const node = element(this._parent, 'jp-dist-Timeline-chip', 'button');
    node.type = 'button';
    node.tabIndex = -1;
    const shown = { node, key: '', chip, hasTime: false };
    node.addEventListener('click', () => this._onClick(shown.chip));
    node.addEventListener('focus', () => this._focusable(node));
    return shown;
  }

  private _write(shown: IShown, colours: IColours): void {
    const { node, chip } = shown;
    const { left, right, lane, isRunning } = chip;
    const { parts, title } = this._say(chip);
    node.style.left = `${left}px`;
    node.style.width = `${right - left}px`;
    node.style.top = `${lane * LANE + (LANE - CHIP) / 2}px`;
    node.classList.toggle('jp-mod-running', isRunning);
    if (node.title !== title) {
      node.title = title;
      node.setAttribute('aria-label', title);
    }
    const fitting = this._fit(chip, parts, colours);
    shown.hasTime = fitting.length > 1;
    while (node.childElementCount > fitting.length) {
      node.lastElementChild?.remove();
    }
    fitting.forEach((part, index) => {
      const span = node.children[index] ?? element(node, '', 'span');
      if (span.textContent !== part) {
        span.textContent = part;
      }
    });
  }

  private _say({ bands }: IChip): IBandWords {
    const { now, pools } = this._model;
    return bands.length > 1
      ? sayBands(bands, this._trans)
      : sayBand(bands[0], now, pools, this._trans);
  }

  private _fit(
    { left, room }: IChip,
    parts: readonly string[],
    colours: IColours
  ): string[] {
    this._ctx ??= document.createElement('canvas').getContext('2d');
    const ctx = this._ctx;
    return fitLabel(parts, room - left - 2 * CHIP_MARGIN, CHIP_MARGIN, part => {
      if (!ctx) {
        return 0;
      }
      ctx.font = chipFont(colours, parts.indexOf(part));
      return ctx.measureText(part).width;
    });
  }

  private _onClick({ bands }: IChip): void {
    if (bands.length === 1) {
      this._options.jump(bands[0]);
      return;
    }
    const [first, last] = [bands[0], bands[bands.length - 1]];
    const margin = Math.max(1, (last.start - first.start) / 4);
    this._options.zoom(first.start - margin, last.start + margin);
  }

  private _focusable(node: HTMLButtonElement | undefined): void {
    this._shown.forEach(other => (other.node.tabIndex = -1));
    if (node) {
      node.tabIndex = 0;
    }
  }

  private readonly _onKey = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const index = this._shown.findIndex(({ node }) => node === event.target);
    if (step && index >= 0) {
      this._shown[index + step]?.node.focus();
      event.preventDefault();
      event.stopPropagation();
    }
  };

  private _shown: IShown[] = [];
  private _lanes: readonly string[] = [];
  private _ctx: CanvasRenderingContext2D | null = null;
}

/** The first part of a label is the strongest. */
export function chipFont({ font }: IColours, part: number): string {
  return `${part === 0 ? 600 : 400} ${TEXT}px ${font}`;
}
