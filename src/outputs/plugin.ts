import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  IRenderMimeRegistry,
  RenderedError,
  RenderedText
} from '@jupyterlab/rendermime';
import type { IOutputModel, IRenderMime } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';

import { loadTranslations } from '../model/trans';
import { HEADER, kindOf } from './item';
import { OutputView } from './outputView';
import { areaOf, TabBar } from './tabBar';

/** Shows the output of a cell on several ranks merged, or that of one rank. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:outputs',
  description: 'Tabs above the outputs of cells on several ranks.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ITranslator],
  activate: (
    _,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator
  ): void => {
    loadTranslations(translator);
    addRenderers(rendermime);
  }
};

/** The text of a cell on several ranks begins like this. */
const LABELLED = /^\[\d/;
/** Before HTML, which other front ends show. */
const HEADER_RANK = 10;

/** Leave text to the view of an output area, where there is one; all other text is drawn as usual. */
function leaveToView<Renderer extends RenderedText | RenderedError>(
  renderer: Renderer
): Renderer {
  const draw = renderer.renderModel.bind(renderer);
  renderer.renderModel = async model => {
    if (!renderer.parent && mayBeOurs(model)) {
      // An output area makes a renderer before it inserts it. The header, which is first, waits as long,
      // so it has been read by then.
      await Promise.resolve();
    }
    const area = areaOf(renderer);
    const view = area && OutputView.of(area);
    if (!view?.draws(model as IOutputModel)) {
      await draw(model);
    }
  };
  return renderer;
}

function mayBeOurs(model: IRenderMime.IMimeModel): boolean {
  const { streamText } = model as Partial<IOutputModel>;
  return streamText
    ? LABELLED.test(streamText.text)
    : ['text', 'label'].includes(kindOf(model as IOutputModel));
}

/** Draw the header as tabs, and replace JupyterLab's renderers of text by ours. */
export function addRenderers(rendermime: IRenderMimeRegistry): void {
  const add = (
    mimeType: string,
    createRenderer: IRenderMime.IRendererFactory['createRenderer'],
    // The same rank keeps the order in which types are preferred.
    rank = rendermime.getRank(mimeType)
  ) =>
    rendermime.addFactory(
      { safe: true, mimeTypes: [mimeType], createRenderer },
      rank
    );
  const text = (options: IRenderMime.IRendererOptions) =>
    leaveToView(new RenderedText(options));
  add(HEADER, () => new TabBar(), HEADER_RANK);
  add('text/plain', text);
  add('application/vnd.jupyter.stdout', text);
  add('application/vnd.jupyter.stderr', options =>
    leaveToView(new RenderedError(options))
  );
}
