import type { Locator } from '@playwright/test';

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
