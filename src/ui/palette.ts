import type { ICommandPalette } from '@jupyterlab/apputils';

import { trans } from '../model/trans';

/** Offer commands in the palette, where there is one; to be called by the plugin that adds them. */
export function addToPalette(
  palette: ICommandPalette | null | undefined,
  commands: readonly string[]
): void {
  for (const command of commands) {
    palette?.addItem({
      command,
      category: trans.__('Distributed'),
      args: { isPalette: true }
    });
  }
}
