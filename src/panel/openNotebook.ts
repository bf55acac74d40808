import { showErrorMessage } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

/**
 * Open the notebook of a pool; say so if it is no longer there, or cannot be reached from this server.
 */
export async function openNotebook(
  path: string,
  commands: CommandRegistry,
  trans: TranslationBundle
): Promise<void> {
  try {
    await commands.execute('docmanager:open', { path });
  } catch (error) {
    await showErrorMessage(
      trans.__('“%1” cannot be opened', path),
      error instanceof Error ? error : String(error)
    );
  }
}
