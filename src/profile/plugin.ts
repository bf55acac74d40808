import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../model/tokens';
import { loadTranslations, trans } from '../model/trans';
import { openTrace } from './openTrace';
import { isTrace, TRACE, TraceView } from './traceView';

/** Before HTML, which is what others see of a trace. */
const RANK = 10;

/**
 * Shows traces of profiled cells, and opens them from there or from the file browser.
 */
export const profilePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:profile',
  description: 'Opens the traces of profiled cells in Perfetto.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ITranslator],
  optional: [IFileBrowserFactory],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator,
    browsers: IFileBrowserFactory | null
  ): void => {
    loadTranslations(translator);
    const { contents, serverSettings } = serviceManager;

    /** The one file that is selected, if it is a trace. */
    const selected = (): string | null => {
      const items = [
        ...(browsers?.tracker.currentWidget?.selectedItems() ?? [])
      ];
      return items.length === 1 && isTrace(items[0].name)
        ? items[0].path
        : null;
    };
    commands.addCommand(CommandIDs.openTrace, {
      label: trans.__('Open in Perfetto'),
      caption: trans.__(
        'Open the trace at ui.perfetto.dev, which reads it in the browser and sends it nowhere.'
      ),
      isVisible: () => selected() !== null,
      execute: async ({ path }) => {
        const file = typeof path === 'string' ? path : selected();
        if (file !== null) {
          await openTrace(file, contents, serverSettings);
        }
      }
    });
    rendermime.addFactory(
      {
        safe: true,
        mimeTypes: [TRACE],
        createRenderer: ({ resolver }) => {
          const open = (path: string) =>
            void commands.execute(CommandIDs.openTrace, { path });
          return new TraceView(resolver, open);
        }
      },
      RANK
    );
  }
};
