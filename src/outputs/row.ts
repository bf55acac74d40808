import { renderError, renderText } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { element } from '../ui/element';
import { colourOf } from '../ui/meters';
import { onlyRank, type IOwner } from './labels';

/** Escape codes and links, which need JupyterLab's renderer. */
// eslint-disable-next-line no-control-regex
const MARKED_UP = /\x1b|:\/\/|www\./;

/** What JupyterLab needs to draw safe text with links. */
export type Drawing = Pick<
  IRenderMimeRegistry,
  'sanitizer' | 'resolver' | 'linkHandler'
>;

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

/** Show the ranks at the left of their output. */
export function addGutter(parent: Element, owner: IOwner | null): void {
  const gutter = element(parent, 'jp-dist-Gutter', 'span');
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
}

export function addRow(
  parent: Element,
  row: IRow,
  { sanitizer, resolver, linkHandler }: Drawing,
  withRanks: boolean
): HTMLElement {
  const node = element(parent, 'jp-dist-Row');
  if (withRanks) {
    addGutter(node, row.owner);
  }
  const text = element(node, 'jp-dist-Row-text');
  text.classList.toggle('jp-mod-stderr', row.isError);
  const options = { host: text, sanitizer, source: row.text };
  if (resolver && row.isError && row.text.includes('/')) {
    // Paths, as in a traceback, can be opened.
    void renderError({ ...options, resolver, linkHandler });
  } else if (MARKED_UP.test(row.text)) {
    void renderText(options);
  } else {
    element(text, '', 'pre').textContent = row.text;
  }
  return node;
}
