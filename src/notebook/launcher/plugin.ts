import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { CommandIDs } from '../../model/tokens';
import { loadTranslations, trans } from '../../model/trans';
import { addToPalette } from '../../ui/palette';
import { firstCells, makeNotebook } from './newNotebook';

/** Makes notebooks that start ranks, from the launcher, the menu and the palette. */
export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:launcher',
  description: 'Makes notebooks whose first cells start ranks.',
  autoStart: true,
  requires: [ITranslator],
  optional: [ILauncher, IDefaultFileBrowser, ICommandPalette],
  activate: (
    { commands, serviceManager },
    translator: ITranslator,
    launcher: ILauncher | null,
    browser: IDefaultFileBrowser | null,
    palette: ICommandPalette | null
  ): void => {
    loadTranslations(translator);
    commands.addCommand(CommandIDs.newNotebook, {
      label: args =>
        args.isPalette
          ? trans.__('New Distributed Notebook')
          : trans.__('Distributed Notebook'),
      caption: trans.__('Create a notebook whose first cells start ranks.'),
      icon: args => (args.isPalette ? undefined : launcherIcon),
      execute: async ({ cwd }) => {
        const folder = typeof cwd === 'string' ? cwd : browser?.model.path;
        try {
          const path = await makeNotebook(
            serviceManager,
            folder ?? '',
            firstCells()
          );
          const open: Promise<unknown> = commands.execute('docmanager:open', {
            path
          });
          return await open;
        } catch (error) {
          const title = trans.__('The notebook could not be created');
          await showErrorMessage(title, error as Error);
        }
      }
    });
    addToPalette(palette, [CommandIDs.newNotebook]);
    launcher?.add({
      command: CommandIDs.newNotebook,
      // The launcher identifies its sections by JupyterLab's translation.
      category: translator.load('jupyterlab').__('Notebook'),
      kernelIconUrl: LOGO_URL,
      rank: 100
    });
  }
};

// The colors of ranks 0 to 3: an image has no CSS variables.
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 52 52" width="52" height="52">
  <path fill="none" stroke="#9e9e9e" stroke-width="1.5" d="M6 6h17v17H6zM29 6h17v17H29zM6 29h17v17H6zM29 29h17v17H29z"/>
  <path fill="#0072b2" d="M5 5h6v19H5z"/>
  <path fill="#e69f00" d="M28 5h6v19h-6z"/>
  <path fill="#009e73" d="M5 28h6v19H5z"/>
  <path fill="#cc79a7" d="M28 28h6v19h-6z"/>
</svg>`;

const launcherIcon = new LabIcon({
  name: 'jupyter-dist-server:launcher',
  svgstr: SVG
});

const LOGO_URL = `data:image/svg+xml,${encodeURIComponent(SVG)}`;
