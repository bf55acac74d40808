import { OutputArea, OutputAreaModel } from '@jupyterlab/outputarea';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';

import { HEADER } from '../outputs/item';
import { addRenderers } from '../outputs/plugin';

/** What the kernel puts before the outputs of a cell on several ranks. */
export const header = (failed?: Record<string, string>, size = 3) => ({
  output_type: 'display_data',
  data: {
    [HEADER]: {
      ranks: `0-${size - 1}`,
      world_size: size,
      ...(failed && { failed })
    },
    'text/html': ''
  },
  metadata: {}
});
export const stream = (text: string, name = 'stdout') => ({
  output_type: 'stream',
  name,
  text
});
export const display = (
  text: string,
  metadata: object,
  mime = 'text/plain'
) => ({
  output_type: 'display_data',
  data: { [mime]: text },
  metadata: { ...metadata }
});
export const label = (text: string) =>
  display(text, { jupyter_dist_kind: 'label' });
export const redrawn = (text: string) =>
  display(text, { jupyter_dist_stream: 'stdout' });

// jsdom has no layout.
Element.prototype.scrollIntoView = () => undefined;

/** The one that a test looks at. */
export let area: OutputArea;

export function makeArea(
  outputs: object[] = [],
  limit = Infinity,
  options: Partial<RenderMimeRegistry.IOptions> = {}
): OutputArea {
  const rendermime = new RenderMimeRegistry({
    initialFactories: standardRendererFactories,
    ...options
  });
  addRenderers(rendermime);
  const model = new OutputAreaModel({ values: outputs as never });
  const made = new OutputArea({ model, rendermime, maxNumberOutputs: limit });
  Widget.attach(made, document.body);
  return made;
}

export function make(...args: Parameters<typeof makeArea>): void {
  area = makeArea(...args);
}

export async function drawn(): Promise<void> {
  await new Promise(resolve => requestAnimationFrame(resolve));
  await new Promise(resolve => requestAnimationFrame(resolve));
}

export async function add(...outputs: object[]): Promise<void> {
  outputs.forEach(output => area.model.add(output as never));
  await drawn();
}

export const tabs = () =>
  [...area.node.querySelectorAll<HTMLElement>('[role=tab]')].map(
    node => node.textContent
  );
export const tab = (index: number) =>
  area.node.querySelectorAll<HTMLElement>('[role=tab]')[index];

/** What is to be seen, output by output. */
export function seen(): string[] {
  return [...area.node.querySelectorAll<HTMLElement>('.jp-OutputArea-child')]
    .filter(node => !node.classList.contains('jp-dist-mod-hidden'))
    .slice(1)
    .map(node => {
      const rows = [...node.querySelectorAll('.jp-dist-Row')];
      const texts = rows.map(row =>
        [...row.children].map(child => child.textContent).join('|')
      );
      return rows.length ? texts.join('\n') : (node.textContent ?? '');
    });
}
