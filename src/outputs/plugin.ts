import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  IRenderMimeRegistry,
  RenderedError,
  RenderedText
} from '@jupyterlab/rendermime';
import type { IOutputModel, IRenderMime } from '@jupyterlab/rendermime';
import { ITranslator } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';

import { loadTranslations } from '../model/trans';
import { kindOf, HEADER } from './item';
import { OutputView } from './outputView';
import { areaOf, TabBar } from './tabBar';

/**
 * Shows what a cell has put out on several ranks merged, or one rank's alone.
 */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:outputs',
  description: 'Tabs above the outputs of cells on several ranks.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator
  ): void => {
    loadTranslations(translator);
    addRenderers(rendermime);
  }
};

/** What the text of a cell on several ranks begins with. */
const LABELLED = /^\[\d/;
/** Before HTML, which is what others see of the header. */
const HEADER_RANK = 10;

/** Text that a view draws instead, where there is one; everywhere else as it ever was. */
class RankText extends RenderedText {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    if (!this.parent && mayBeOurs(model)) {
      await placed();
    }
    if (!isDrawnByView(this, model)) {
      await super.renderModel(model);
    }
  }
}

class RankErrorText extends RenderedError {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    if (!this.parent && mayBeOurs(model)) {
      await placed();
    }
    if (!isDrawnByView(this, model)) {
      await super.renderModel(model);
    }
  }
}

/** Other text is drawn at once, as it ever was. */
function mayBeOurs(model: IRenderMime.IMimeModel): boolean {
  const { streamText } = model as Partial<IOutputModel>;
  return streamText
    ? LABELLED.test(streamText.text)
    : ['text', 'label'].includes(kindOf(model as IOutputModel));
}

/**
 * An output area makes a renderer before it puts it into itself. The header, which comes first, waits
 * as long, and so has been read by then.
 */
function placed(): Promise<void> {
  return Promise.resolve();
}

function isDrawnByView(widget: Widget, model: IRenderMime.IMimeModel): boolean {
  const area = areaOf(widget);
  const view = area && OutputView.of(area);
  return view?.draws(model as IOutputModel) ?? false;
}

/** Draw the header as tabs, and put our renderers of text in the place of JupyterLab's. */
export function addRenderers(rendermime: IRenderMimeRegistry): void {
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: [HEADER],
      createRenderer: () => new TabBar()
    },
    HEADER_RANK
  );
  const replace = (
    mimeType: string,
    createRenderer: IRenderMime.IRendererFactory['createRenderer']
  ) => {
    const factory = { safe: true, mimeTypes: [mimeType], createRenderer };
    // At the same rank: what is preferred to what stays as it was.
    rendermime.addFactory(factory, rendermime.getRank(mimeType));
  };
  replace('text/plain', options => new RankText(options));
  replace('application/vnd.jupyter.stdout', options => new RankText(options));
  replace(
    'application/vnd.jupyter.stderr',
    options => new RankErrorText(options)
  );
}
