import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../model/tokens';
import { loadTranslations, trans } from '../model/trans';
import { selectedFile } from '../ui/files';
import { openTrace } from './openTrace';
import { isTrace, TRACE, TraceView } from './traceView';

/** Before HTML, which other front ends show. */
const RANK = 10;

/** Shows traces of profiled cells, and opens them, also from the file browser. */
export const profilePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:profile',
  description: 'Opens the traces of profiled cells in Perfetto.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ITranslator],
  optional: [IFileBrowserFactory],
  activate: (
    { commands, serviceManager },
    rendermime: IRenderMimeRegistry,
    translator: ITranslator,
    browsers: IFileBrowserFactory | null
  ): void => {
    loadTranslations(translator);
    const { contents, serverSettings } = serviceManager;

    const selected = () => selectedFile(browsers, ({ name }) => isTrace(name));
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
