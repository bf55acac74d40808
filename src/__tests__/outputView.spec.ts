import { HEADER } from '../outputs/item';
import {
  add,
  area,
  display,
  drawn,
  header,
  label,
  make,
  redrawn,
  seen,
  stream,
  tab,
  tabs
} from './outputArea';
import { until } from './samples';

afterEach(() => area.dispose());

describe('an output area with a header', () => {
  it('shows text with its ranks, and one rank alone', async () => {
    make();
    await add(header(), stream('[0-2] all\n[0]   mine 0\n'));
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
      header(),
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

  it('reads text without a stream, as JupyterLab 4.2 has it, and goes on as it grows', async () => {
    const out = (text: string) =>
      display(
        text,
        { jupyter_dist_stream: 'stdout' },
        'application/vnd.jupyter.stdout'
      );
    make([header(), out('[0-2] all\n[0]   mi')]);
    await drawn();
    expect(seen()).toEqual(['0–2|all\n0|mi']);
    const row = area.node.querySelector('.jp-dist-Row');
    area.model.set(1, out('[0-2] all\n[0]   mine\n[1]   new\n') as never);
    await drawn();
    expect(seen()).toEqual(['0–2|all\n0|mine\n1|new']);
    expect(area.node.querySelector('.jp-dist-Row')).toBe(row);
  });

  it('keeps what is drawn and has not changed, as it may be selected', async () => {
    make([header(), stream('[0]   first\n[1]   second\n')]);
    await drawn();
    const row = area.node.querySelector('.jp-dist-Row');
    await add(stream('[1]   third\n'));
    expect(area.node.querySelector('.jp-dist-Row')).toBe(row);
  });

  it('hides the displays of others, and errors from who has none', async () => {
    make([
      header(),
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
    area.model.set(0, header({ 2: 'E: too warm' }) as never);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1', '2●']);
    expect(tab(3).title).toBe('Rank 2, failed: E: too warm');
    tab(1).click();
    expect(seen()).toEqual(['both']);
    tab(3).click();
    expect(seen()).toEqual(['plain', 'it failed']);
  });

  it('links the paths in what ranks write to stderr', async () => {
    const resolver = {
      resolveUrl: (url: string) => Promise.resolve(url),
      getDownloadUrl: (url: string) => Promise.resolve(url),
      resolvePath: (path: string) => Promise.resolve({ path, scope: 'server' })
    };
    const linkHandler = { handleLink: jest.fn(), handlePath: jest.fn() };
    make([header()], Infinity, { resolver, linkHandler } as never);
    await add(stream('[1]   File "/home/ann/train.py", line 7\n', 'stderr'));
    await until(() => linkHandler.handlePath.mock.calls.length > 0);
    expect(linkHandler.handlePath.mock.calls[0].slice(1)).toEqual([
      '/home/ann/train.py',
      'server',
      '#line=6'
    ]);
  });

  it('puts figures that follow one another side by side, by rank', async () => {
    const figure = (text: string) => display(text, {}, 'image/svg+xml');
    const places = () =>
      area.widgets.flatMap(({ node }) =>
        node.classList.contains('jp-dist-mod-figure')
          ? [`${node.dataset.ranks} ${node.style.order}`]
          : []
      );
    make([header(), stream('[0-2] drawn\n'), label('[2]'), figure('<svg/>')]);
    await drawn();
    expect(places()).toEqual([]);
    await add(label('[0-1]'), figure('<svg/>'), label('[2]'), figure('<svg/>'));
    expect(places()).toEqual(['2 5', '0–1 3', '2 7']);
    expect(area.hasClass('jp-dist-mod-grid')).toBe(true);
    await add(stream('[0-2] text\n'), label('[1]'), figure('<svg/>'));
    expect(places()).toHaveLength(3);
    tab(3).click();
    expect(places()).toEqual([]);
    expect(area.hasClass('jp-dist-mod-grid')).toBe(false);
  });

  it('filters long text, also while it arrives', async () => {
    const lines = (from: number) =>
      [...Array(300).keys()].map(i => `[0-2] Line ${from + i}\n`).join('');
    make([header(), stream(lines(0)), redrawn('[1]   line 7 of rank 1')]);
    await drawn();
    const count = () => area.node.querySelector('[role=status]')?.textContent;
    const field = area.node.querySelector<HTMLInputElement>('[type=search]');
    const filter = (words: string) => {
      if (field) {
        field.value = words;
        field.dispatchEvent(new Event('input'));
      }
    };
    expect(count()).toBe('301 lines');
    filter('line 7');
    // 7, 70 to 79, and rank 1's.
    expect(count()).toBe('12 of 301 lines');
    await add(stream(lines(700)));
    expect(count()).toBe('112 of 601 lines');
    tab(1).click();
    expect(count()).toBe('111 of 600 lines');
    field?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    expect(count()).toBe('600 lines');
  });

  it('shows all text, however few outputs JupyterLab draws', async () => {
    make([header()], 3);
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
    data: { [HEADER]: content, 'text/html': '' },
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
  ])('has text without tabs below a header that says %j', async content => {
    make([marked(content), stream('[0-50000000] text\n')]);
    await drawn();
    expect(tabs()).toEqual([]);
    expect(area.node.textContent).toContain('[0-50000000] text');
  });

  it('has labels in its text that name more ranks than there can be', async () => {
    const texts = ['[0-50000000] a', '[5-1] b', '[1--2] c', '[0-4095]'];
    make([header(), stream(`${texts.join('\n')}\n[0-2] all\n`)]);
    await drawn();
    expect(seen()).toEqual([`|${texts.join('\n')}\n0–2|all`]);
  });

  it('gives no reasons but words, and only for its own ranks', async () => {
    const content = { ranks: '0-1', world_size: 2, failed: { 0: {}, 9: 'no' } };
    make([marked(content), stream('[0]   a\n')]);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1']);
  });

  it('loses its tabs when its header becomes unreadable', async () => {
    make([header(), stream('[0-2] all\n')]);
    await drawn();
    expect(tabs()).toHaveLength(4);
    area.model.set(0, marked({}) as never);
    await drawn();
    expect(area.node.querySelector('.jp-dist-OutputTabs:not([hidden])')).toBe(
      null
    );
  });
});

describe('an output area without a header', () => {
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
