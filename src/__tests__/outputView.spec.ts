import { OutputArea, OutputAreaModel } from '@jupyterlab/outputarea';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { MARK } from '../outputs/item';
import { addRenderers } from '../outputs/plugin';
import { until } from './samples';

const mark = (failed?: Record<string, string>, size = 3) => ({
  output_type: 'display_data',
  data: {
    [MARK]: {
      ranks: `0-${size - 1}`,
      world_size: size,
      ...(failed && { failed })
    },
    'text/html': ''
  },
  metadata: {}
});
const stream = (text: string, name = 'stdout') => ({
  output_type: 'stream',
  name,
  text
});
const display = (text: string, metadata: object, mime = 'text/plain') => ({
  output_type: 'display_data',
  data: { [mime]: text },
  metadata: { ...metadata }
});
const label = (text: string) => display(text, { jupyter_dist_kind: 'label' });
const redrawn = (text: string) =>
  display(text, { jupyter_dist_stream: 'stdout' });

// jsdom has no layout.
Element.prototype.scrollIntoView = () => undefined;

let area: OutputArea;

function makeArea(
  outputs: object[] = [],
  limit = Infinity,
  options: Partial<RenderMimeRegistry.IOptions> = {}
): OutputArea {
  const rendermime = new RenderMimeRegistry({
    initialFactories: standardRendererFactories,
    ...options
  });
  addRenderers(rendermime, nullTranslator.load('jupyter_dist_server'));
  const model = new OutputAreaModel({ values: outputs as never });
  const made = new OutputArea({ model, rendermime, maxNumberOutputs: limit });
  Widget.attach(made, document.body);
  return made;
}

function make(...args: Parameters<typeof makeArea>): void {
  area = makeArea(...args);
}

async function drawn(): Promise<void> {
  await new Promise(resolve => requestAnimationFrame(resolve));
  await new Promise(resolve => requestAnimationFrame(resolve));
}

async function add(...outputs: object[]): Promise<void> {
  outputs.forEach(output => area.model.add(output as never));
  await drawn();
}

const tabs = () =>
  [...area.node.querySelectorAll<HTMLElement>('[role=tab]')].map(
    node => node.textContent
  );
const tab = (index: number) =>
  area.node.querySelectorAll<HTMLElement>('[role=tab]')[index];

/** What is to be seen, output by output. */
function seen(): string[] {
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

afterEach(() => area.dispose());

describe('an output area with a mark', () => {
  it('shows text with its ranks, and one rank alone', async () => {
    make();
    await add(mark(), stream('[0-2] all\n[0]   mine 0\n'));
    await add(stream('[1]   mine 1\n[1]   more\n'));
    expect(tabs()).toEqual(['Merged', '0', '1', '2']);
    expect(seen()).toEqual(['0–2|all\n0|mine 0\n1|mine 1\nmore']);
    tab(2).click();
    expect(seen()).toEqual(['all\nmine 1\nmore']);
    await add(stream('[1]   live\n'));
    expect(seen()).toEqual(['all\nmine 1\nmore\nlive']);
    tab(3).click();
    expect(seen()).toEqual(['all']);
  });

  it('draws text that follows text in one place', async () => {
    make([
      mark(),
      stream('[0]   out\n'),
      redrawn('[1]   drawn'),
      stream('[2]   err\n', 'stderr')
    ]);
    await drawn();
    expect(seen()).toEqual(['0|out\n1|drawn\n2|err']);
    const stderr = area.node.querySelectorAll('.jp-mod-stderr');
    expect([...stderr].map(node => node.textContent)).toEqual(['err']);
    area.model.set(2, redrawn('[1-2] drawn\n[2]   new') as never);
    await drawn();
    expect(seen()).toEqual(['0|out\n1–2|drawn\n2|new\n2|err']);
  });

  it('keeps what is drawn and has not changed, as it may be selected', async () => {
    make([mark(), stream('[0]   first\n[1]   second\n')]);
    await drawn();
    const row = area.node.querySelector('.jp-dist-Row');
    await add(stream('[1]   third\n'));
    expect(area.node.querySelector('.jp-dist-Row')).toBe(row);
  });

  it('hides the displays of others, and errors from who has none', async () => {
    make([
      mark(),
      label('[0-1]'),
      display('<b>both</b>', {}, 'text/html'),
      label('[2]'),
      display('plain', {})
    ]);
    await add({
      output_type: 'error',
      ename: 'E',
      evalue: '',
      traceback: ['it failed']
    });
    expect(seen()).toEqual(['0–1', 'both', '2', 'plain', 'it failed']);
    area.model.set(0, mark({ 2: 'E: too warm' }) as never);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1', '2●']);
    expect(tab(3).title).toBe('Rank 2, failed: E: too warm');
    tab(1).click();
    expect(seen()).toEqual(['both']);
    tab(3).click();
    expect(seen()).toEqual(['plain', 'it failed']);
  });

  it('says that a rank has shown nothing', async () => {
    make([mark(), stream('[0]   x\n')]);
    await drawn();
    tab(2).click();
    expect(area.node.textContent).toContain('Rank 1 has shown nothing.');
    tab(1).click();
    expect(area.node.textContent).not.toContain('has shown nothing');
  });

  it('marks who differs from most, once nothing has come for a while', async () => {
    make([mark(), stream('[0-2] all\n[1]   odd\n')]);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1', '2']);
    await until(() => tabs().join() === 'Merged,0,1○,2');
  });

  it('goes through its tabs by keyboard', async () => {
    make([mark(), stream('[0]   zero\n[2]   two\n')]);
    await drawn();
    const press = (key: string) =>
      document.activeElement?.dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true })
      );
    tab(0).focus();
    press('ArrowRight');
    expect(document.activeElement).toBe(tab(1));
    expect(seen()).toEqual(['zero']);
    press('End');
    expect(seen()).toEqual(['two']);
    press('ArrowRight');
    expect(document.activeElement).toBe(tab(0));
    press('ArrowLeft');
    press('Home');
    expect(tab(0).getAttribute('aria-selected')).toBe('true');
    expect([0, 1, 2, 3].map(index => tab(index).tabIndex)).toEqual([
      0, -1, -1, -1
    ]);
  });

  it('has what a tab shows in a panel, which is named as the tab', async () => {
    const outputs = [
      mark(),
      stream('[0-1] text\n'),
      label('[0]'),
      display('<b>mine</b>', {}, 'text/html')
    ];
    make(outputs);
    const twin = makeArea(outputs);
    await drawn();
    const panel = area.node.querySelector('[role=tabpanel]')!;
    const node = (id: string) => document.querySelectorAll(`[id="${id}"]`);
    const owned = () =>
      panel
        .getAttribute('aria-owns')!
        .split(' ')
        .filter(id => id)
        .map(id => {
          expect(node(id)).toHaveLength(1);
          return area.node.contains(node(id)[0]) && node(id)[0].textContent;
        });
    const expectNamedBy = (index: number) => {
      expect(panel.getAttribute('aria-labelledby')).toBe(tab(index).id);
      expect(node(tab(index).id)).toHaveLength(1);
      expect(tab(index).getAttribute('aria-controls')).toBe(panel.id);
      expect(node(panel.id)).toHaveLength(1);
    };
    expectNamedBy(0);
    expect(owned()).toEqual(['0–1text', '0', 'mine']);
    tab(2).click();
    expectNamedBy(2);
    expect(owned()).toEqual(['text']);
    tab(3).click();
    expectNamedBy(3);
    expect(owned()).toEqual([]);
    expect(panel.textContent).toBe('Rank 2 has shown nothing.');
    twin.dispose();
  });

  it('counts the marked among many ranks, and turns from one to the next', async () => {
    const marked = () =>
      area.node.querySelector<HTMLElement>('.jp-dist-OutputTabs-marked')!;
    make([mark(undefined, 16), stream('[0-15] all\n')]);
    await drawn();
    expect(marked().hidden).toBe(true);
    area.model.set(0, mark({ 3: 'E' }, 16) as never);
    await add(stream('[11] odd\n[14] odd\n'));
    await until(() => marked().textContent === '● 1 failed  ○ 2 differ');
    expect(marked().hidden).toBe(false);
    for (const rank of [3, 11, 14, 3]) {
      marked().click();
      expect(document.activeElement).toBe(tab(rank + 1));
      expect(tab(rank + 1).getAttribute('aria-selected')).toBe('true');
    }
    expect(seen()).toEqual(['all']);
  });

  it('does not count the marked among few', async () => {
    make([mark({ 2: 'E' }), stream('[0-2] all\n')]);
    await drawn();
    const button = area.node.querySelector<HTMLElement>(
      '.jp-dist-OutputTabs-marked'
    );
    expect(button?.hidden).toBe(true);
  });

  it('keeps its tab when the cell runs again, also after a clear', async () => {
    make([mark(), stream('[0]   zero\n[1]   one\n')]);
    await drawn();
    tab(2).click();
    area.model.clear(true);
    await add(mark(), stream('[1]   again\n'));
    expect(tab(2).getAttribute('aria-selected')).toBe('true');
    expect(seen()).toEqual(['again']);
  });

  it('links the paths in what ranks write to stderr', async () => {
    const resolver = {
      resolveUrl: (url: string) => Promise.resolve(url),
      getDownloadUrl: (url: string) => Promise.resolve(url),
      resolvePath: (path: string) => Promise.resolve({ path, scope: 'server' })
    };
    const linkHandler = { handleLink: jest.fn(), handlePath: jest.fn() };
    make([mark()], Infinity, { resolver, linkHandler } as never);
    await add(stream('[1]   File "/home/ann/train.py", line 7\n', 'stderr'));
    await until(() => linkHandler.handlePath.mock.calls.length > 0);
    expect(linkHandler.handlePath.mock.calls[0].slice(1)).toEqual([
      '/home/ann/train.py',
      'server',
      '#line=6'
    ]);
  });

  it('shows all text, however few outputs JupyterLab draws', async () => {
    make([mark()], 3);
    await add(...[...Array(8).keys()].map(i => redrawn(`[0]   ${i}`)));
    expect(seen()).toEqual(['0|0\n1\n2\n3\n4\n5\n6\n7']);
    await add(label('[1]'), display('<b>behind</b>', {}, 'text/html'));
    await drawn();
    expect(seen()).toEqual(['0|0\n1\n2\n3\n4\n5\n6\n7', '1', 'behind']);
  });
});

describe('a notebook from somebody else', () => {
  const marked = (content: unknown) => ({
    output_type: 'display_data',
    data: { [MARK]: content, 'text/html': '' },
    metadata: {}
  });

  it.each([
    { ranks: '0-50000000', world_size: 50000001 },
    { ranks: '0-3', world_size: 2 },
    { ranks: '3-0', world_size: 4 },
    { ranks: '0,'.repeat(1e6), world_size: 4 },
    { ranks: ['0'], world_size: 4 },
    { ranks: '0', world_size: '1' },
    { world_size: 4 },
    'x'.repeat(1e6),
    null
  ])('has text without tabs below a mark that says %j', async content => {
    make([marked(content), stream('[0-50000000] text\n')]);
    await drawn();
    expect(tabs()).toEqual([]);
    expect(area.node.textContent).toContain('[0-50000000] text');
  });

  it('has labels in its text that name more ranks than there can be', async () => {
    const texts = ['[0-50000000] a', '[5-1] b', '[1--2] c', '[0-4095]'];
    make([mark(), stream(`${texts.join('\n')}\n[0-2] all\n`)]);
    await drawn();
    expect(seen()).toEqual([`|${texts.join('\n')}\n0–2|all`]);
  });

  it('gives no reasons but words, and only for its own ranks', async () => {
    const content = { ranks: '0-1', world_size: 2, failed: { 0: {}, 9: 'no' } };
    make([marked(content), stream('[0]   a\n')]);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1']);
  });

  it('loses its tabs when its mark becomes unreadable', async () => {
    make([mark(), stream('[0-2] all\n')]);
    await drawn();
    expect(tabs()).toHaveLength(4);
    area.model.set(0, marked({}) as never);
    await drawn();
    expect(area.node.querySelector('.jp-dist-OutputTabs:not([hidden])')).toBe(
      null
    );
  });
});

describe('an output area without a mark', () => {
  it('is drawn by JupyterLab, at once', async () => {
    make([stream('[0-1] text\n'), display('plain', {})]);
    expect(area.node.textContent).toContain('plain');
    await drawn();
    expect(area.node.querySelectorAll('.jp-dist-Row')).toHaveLength(0);
    const [text] = area.node.querySelectorAll('.jp-RenderedText > pre');
    expect(text.textContent).toBe('[0-1] text\n');
    await add(stream('more\n', 'stderr'));
    expect(area.node.textContent).toContain('more');
  });
});
