import type { Locator } from '@playwright/test';

/** JupyterLab's own width of a side panel, which is the least one, and a little more. */
export const WIDTHS = [320, 250];

/** What must be readable in full in the panel at any width, and in one line. */
export const WHOLE = [
  '.jp-dist-RankTile-head > *',
  '.jp-dist-RankTile-load > .jp-dist-Percent',
  '.jp-dist-RankTile-use > span > :first-child',
  '.jp-dist-StatePill',
  '.jp-dist-Actions > .jp-Button',
  '.jp-dist-Chip-name',
  '.jp-dist-Chip-load',
  '.jp-dist-GpuCard-head > :not(.jp-dist-quiet)',
  '.jp-dist-Link'
].join();

/** The texts that are cut off, that stick out of a part of the page, or that are broken into lines. */
export function cutIn(root: Locator, texts: string): Promise<string[]> {
  return root.evaluate((root, selector) => {
    const { right } = root.getBoundingClientRect();
    return [...root.querySelectorAll<HTMLElement>(selector)]
      .filter(node => {
        const box = node.getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(node);
        const lines = new Set(
          [...range.getClientRects()].map(({ bottom }) =>
            Math.round(bottom / 8)
          )
        );
        return (
          box.width > 0 &&
          (node.scrollWidth > node.clientWidth + 1 ||
            box.right > right ||
            lines.size > 2)
        );
      })
      .map(node => `${node.className}: ${node.textContent}`);
  }, texts);
}
