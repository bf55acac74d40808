import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';

import { addToPalette } from '../../ui/palette';
import { CommandIDs, TRANSLATION_DOMAIN } from '../../model/tokens';
import { firstCells } from './firstCells';
import { LOGO_URL, launcherIcon } from './icon';
import { makeNotebook } from './makeNotebook';

/**
 * Makes notebooks that start ranks, from the launcher, the menu and the palette.
 */
export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:launcher',
  description: 'Makes notebooks whose first cells start ranks.',
  autoStart: true,
  requires: [ITranslator],
  optional: [ILauncher, IDefaultFileBrowser, ICommandPalette],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    translator: ITranslator,
    launcher: ILauncher | null,
    browser: IDefaultFileBrowser | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = translator.load(TRANSLATION_DOMAIN);
    commands.addCommand(CommandIDs.newNotebook, {
      label: args =>
        args.isPalette
          ? trans.__('New Distributed Notebook')
          : trans.__('Distributed Notebook'),
      caption: trans.__('Make a notebook whose first cells start ranks.'),
      icon: args => (args.isPalette ? undefined : launcherIcon),
      execute: async ({ cwd }) => {
        const folder = typeof cwd === 'string' ? cwd : browser?.model.path;
        try {
          const path = await makeNotebook(
            serviceManager,
            folder ?? '',
            firstCells(trans)
          );
          return (await commands.execute('docmanager:open', {
            path
          })) as unknown;
        } catch (error) {
          // Menus and the palette would say nothing.
          await showErrorMessage(
            trans.__('The notebook cannot be made'),
            error instanceof Error ? error : String(error)
          );
        }
      }
    });
    addToPalette(palette, trans, [CommandIDs.newNotebook]);
    launcher?.add({
      command: CommandIDs.newNotebook,
      // The launcher knows its own sections by JupyterLab's word for them.
      category: translator.load('jupyterlab').__('Notebook'),
      kernelIconUrl: LOGO_URL,
      rank: 100
    });
  }
};
