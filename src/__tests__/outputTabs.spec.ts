import {
  add,
  area,
  display,
  drawn,
  header,
  label,
  make,
  makeArea,
  seen,
  stream,
  tab,
  tabs
} from './outputArea';
import { until } from './samples';

afterEach(() => area.dispose());

describe('the tabs of an output area', () => {
  it('says that a rank has no output', async () => {
    make([header(), stream('[0]   x\n')]);
    await drawn();
    tab(2).click();
    expect(area.node.textContent).toContain('Rank 1 has no output.');
    tab(1).click();
    expect(area.node.textContent).not.toContain('has no output');
  });

  it('marks who differs from most, once nothing has come for a while', async () => {
    make([header(), stream('[0-2] all\n[1]   odd\n')]);
    await drawn();
    expect(tabs()).toEqual(['Merged', '0', '1', '2']);
    await until(() => tabs().join() === 'Merged,0,1○,2');
  });

  it('goes through its tabs by keyboard', async () => {
    make([header(), stream('[0]   zero\n[2]   two\n')]);
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
      header(),
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
    expect(panel.textContent).toBe('Rank 2 has no output.');
    twin.dispose();
  });

  it('counts the marked among many ranks, and turns from one to the next', async () => {
    const marked = () =>
      area.node.querySelector<HTMLElement>('.jp-dist-OutputTabs-marked')!;
    make([header(undefined, 16), stream('[0-15] all\n')]);
    await drawn();
    expect(marked().hidden).toBe(true);
    area.model.set(0, header({ 3: 'E' }, 16) as never);
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
    make([header({ 2: 'E' }), stream('[0-2] all\n')]);
    await drawn();
    const button = area.node.querySelector<HTMLElement>(
      '.jp-dist-OutputTabs-marked'
    );
    expect(button?.hidden).toBe(true);
  });

  it('keeps its tab when the cell runs again, also after a clear', async () => {
    make([header(), stream('[0]   zero\n[1]   one\n')]);
    await drawn();
    tab(2).click();
    area.model.clear(true);
    await add(header(), stream('[1]   again\n'));
    expect(tab(2).getAttribute('aria-selected')).toBe('true');
    expect(seen()).toEqual(['again']);
  });
});
