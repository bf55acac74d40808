import { expect } from '@playwright/test';
import type { Locator, Page } from '@playwright/test';

/** A variable that JupyterLab's debugger shows; `value` is a pattern. */
export function variable(page: Page, name: string, value: string): Locator {
  const variables = page.locator('.jp-DebuggerVariables');
  return (
    variables
      .getByRole('treeitem', { name: new RegExp(`^${name}: ${value}`) })
      // In JupyterLab 4.2 they are a list, whose colons are drawn by CSS.
      .or(
        variables
          .getByRole('listitem')
          .filter({ hasText: new RegExp(`^${name}${value}`) })
      )
  );
}

/** Clicks beside a line of a cell, once the debugger is on; the icon is not the same in all of JupyterLab 4. */
export async function setBreakpoint(
  cell: Locator,
  line: number
): Promise<void> {
  const place = cell
    .locator('.cm-breakpoint-gutter .cm-gutterElement')
    // The first is out of sight, and makes the others as wide.
    .nth(line);
  await expect(async () => {
    if (!(await place.innerHTML())) {
      await place.click();
    }
    await expect
      .poll(() => place.innerHTML(), { timeout: 10_000 })
      .not.toBe('');
  }).toPass({ timeout: 45_000 });
}
