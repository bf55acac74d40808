import { MessageLoop } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import type { AccordionPanel } from '@lumino/widgets';

import type { UiState } from '../model/uiState';

/** The name under which the sections are remembered. */
export const SECTIONS = 'sections';

/** By section, its part of the height where not all fit. */
const SHARES = [0.53, 0.21, 0.08, 0.18, 0.3];
/** The least height of an open section, in pixels. */
const LEAST = 40;
/** How many pixels a section must need less before others get them, so that they do not move all the time. */
const SLACK = 60;

/** By section. */
interface IKept {
  closed: boolean[];
  /** Once the user has dragged a handle. */
  sizes?: number[];
}

const AT_FIRST: IKept = { closed: [false, false, true, true, true] };

export interface ISection {
  /** The height of its content, in pixels. */
  readonly need: number;
  readonly grown: ISignal<ISection, void>;
}

/**
 * Opens and closes the sections as they were, and keeps it when the user changes that. Each is as high as what
 * it shows, as far as there is room; once the user has dragged a handle, it is as high as the user made it.
 */
export async function rememberSections(
  content: AccordionPanel,
  sections: readonly ISection[],
  uiState: UiState,
  ready: Promise<unknown>
): Promise<void> {
  await ready;
  const kept = uiState.get(SECTIONS) as IKept | undefined;
  const { closed, sizes } = kept ?? AT_FIRST;
  content.widgets.forEach((_, index) =>
    closed[index] ? content.collapse(index) : content.expand(index)
  );
  let shares = sizes ?? null;
  const ofOpen = (all: readonly number[]) =>
    content.widgets.map(({ isHidden }, index) => (isHidden ? 0 : all[index]));
  const keep = () => {
    const closed = content.widgets.map(({ isHidden }) => isHidden);
    uiState.set(SECTIONS, { closed, ...(shares && { sizes: shares }) });
  };

  let needs: number[] = [];
  const look = () => ofOpen(sections.map(({ need }) => Math.max(need, LEAST)));
  const arrange = (update = true) => {
    needs = look();
    const titles = sum(content.titles.map(title => title.offsetHeight));
    const space = content.node.clientHeight - titles;
    const sizes = shares ? ofOpen(shares) : divide(space, needs, SHARES);
    content.setRelativeSizes(sizes, update);
  };
  const follow = () => {
    // Nothing is to move away below the pointer that presses it.
    if (content.node.matches(':active')) {
      window.addEventListener('pointerup', follow, { once: true });
    } else if (
      !shares &&
      look().some(
        (need, index) => need > needs[index] || need < needs[index] - SLACK
      )
    ) {
      arrange();
    }
  };
  // Lumino gives each section the same part of what a resize adds.
  MessageLoop.installMessageHook(content, (_, message) => {
    if (message.type === 'resize') {
      arrange(false);
    }
    return true;
  });
  arrange();
  sections.forEach(({ grown }) => grown.connect(follow));
  content.handleMoved.connect(() => {
    const sizes = ofOpen(content.relativeSizes());
    const before = shares ?? SHARES;
    const scale = sum(ofOpen(before)) / sum(sizes);
    shares = before.map((share, index) => sizes[index] * scale || share);
    keep();
  });
  content.expansionToggled.connect(() => {
    arrange();
    keep();
  });
}

/**
 * Heights for sections that need as much, 0 if it is closed: what they need, if all fit, and what is left for
 * the last one. Else those get it that need less than their share, and the others share the rest.
 */
export function divide(
  space: number,
  needs: readonly number[],
  shares: readonly number[]
): number[] {
  const heights = needs.map(() => 0);
  let left = space;
  let open = [...needs.keys()].filter(index => needs[index] > 0);
  const last = open.at(-1);
  const share = (index: number) =>
    (left * shares[index]) / sum(open.map(index => shares[index]));
  for (
    let small = open;
    small.length > 0;
    open = open.filter(index => !small.includes(index))
  ) {
    small = open.filter(index => needs[index] <= share(index));
    small.forEach(index => (heights[index] = needs[index]));
    left -= sum(small.map(index => needs[index]));
  }
  open.forEach(index => (heights[index] = share(index)));
  if (open.length === 0 && last !== undefined) {
    heights[last] += left;
  }
  return heights;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
