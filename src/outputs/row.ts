import { renderError, renderText } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { colourOf } from '../ui/meters';
import { onlyRank, type IOwner } from './labels';

/** What the stock renderer draws in a way of its own: escape codes, and links. */
// eslint-disable-next-line no-control-regex
const MARKED_UP = /\x1b|:\/\/|www\./;

/** What draws text as JupyterLab does: it is clean, and its links lead somewhere. */
export type Drawing = Pick<
  IRenderMimeRegistry,
  'sanitizer' | 'resolver' | 'linkHandler'
>;

/** Lines that stand together: of the same ranks, on the same stream. */
export interface IRow {
  owner: IOwner | null;
  isError: boolean;
  text: string;
}

export function isSameRow(one: IRow, other: IRow): boolean {
  return (
    one.text === other.text &&
    one.owner === other.owner &&
    one.isError === other.isError
  );
}

/** Ranks as people write them: `0–3`. */
export function writeRanks(label: string): string {
  return label.replace(/-/g, '–');
}

/** The ranks at the left of what they have shown, which are not copied with it. */
export function makeGutter(owner: IOwner | null): HTMLElement {
  const gutter = document.createElement('span');
  gutter.className = 'jp-dist-Gutter';
  if (owner) {
    const rank = onlyRank(owner);
    gutter.textContent = writeRanks(owner.label);
    gutter.title = gutter.textContent;
    if (rank !== null) {
      gutter.classList.add('jp-mod-one');
      const colour = `var(--jp-dist-rank-${colourOf(rank)})`;
      gutter.style.setProperty('--jp-dist-colour', colour);
    }
  }
  return gutter;
}

/** Draw lines, with their ranks at the left unless these are known. */
export function makeRow(
  row: IRow,
  { sanitizer, resolver, linkHandler }: Drawing,
  withRanks: boolean
): HTMLElement {
  const node = document.createElement('div');
  node.className = 'jp-dist-Row';
  if (withRanks) {
    node.append(makeGutter(row.owner));
  }
  const text = document.createElement('div');
  text.className = 'jp-dist-Row-text';
  text.classList.toggle('jp-mod-stderr', row.isError);
  const options = { host: text, sanitizer, source: row.text };
  if (resolver && row.isError && row.text.includes('/')) {
    // Paths in it, as of a traceback, can be opened.
    void renderError({ ...options, resolver, linkHandler });
  } else if (MARKED_UP.test(row.text)) {
    void renderText(options);
  } else {
    text.appendChild(document.createElement('pre')).textContent = row.text;
  }
  node.append(text);
  return node;
}
