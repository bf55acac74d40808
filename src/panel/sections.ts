import type { AccordionPanel } from '@lumino/widgets';

import type { UiState } from '../model/uiState';

/** The name under which the sections are remembered. */
export const SECTIONS = 'sections';

/** By section. */
interface IKept {
  closed: boolean[];
}

const AT_FIRST: IKept = { closed: [false, false, true, true, true] };

/** Opens and closes the sections as they were, and keeps it when the user changes that. */
export async function rememberSections(
  content: AccordionPanel,
  uiState: UiState,
  ready: Promise<unknown>
): Promise<void> {
  await ready;
  const { closed } = (uiState.get(SECTIONS) as IKept | undefined) ?? AT_FIRST;
  content.widgets.forEach((_, index) =>
    closed[index] ? content.collapse(index) : content.expand(index)
  );
  content.expansionToggled.connect(() =>
    uiState.set(SECTIONS, {
      closed: content.widgets.map(({ isHidden }) => isHidden)
    })
  );
}
