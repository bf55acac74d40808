import { CommandRegistry } from '@lumino/commands';
import React, { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';

import { trans } from '../model/trans';
import { UiState } from '../model/uiState';
import type { IRank } from '../model/contract';
import { VariablesModel } from '../model/variables';
import { Telemetry } from '../model/telemetry';
import { Clock } from '../ui/clock';
import type { IPanelServices } from '../panel/services';
import { RankList } from '../panel/ranks/rankList';
import { FakeStream, makeUsage } from './gpuSamples';
import { makeModel, makePool, makeRank, makeStart } from './samples';

let host: HTMLElement;
let root: Root;
let stream: FakeStream;
/** The same for all that is drawn in a test, as in the panel. */
let services: IPanelServices;

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

beforeEach(() => {
  // All curves move on together every few seconds, which a test would take for news of a rank.
  jest.spyOn(Date, 'now').mockReturnValue(Date.now());
  host = document.body.appendChild(document.createElement('div'));
  root = createRoot(host);
  stream = new FakeStream();
  const model = makeModel({ telemetry: new Telemetry(stream) });
  services = {
    model,
    current: model,
    start: makeStart(model),
    variables: new VariablesModel(model, model.requests),
    uiState: new UiState(null, ''),
    commands: new CommandRegistry(),
    clock: new Clock()
  };
});

afterEach(() => {
  act(() => root.unmount());
  host.remove();
  jest.restoreAllMocks();
});

function makeRanks(count: number): IRank[] {
  return Array.from({ length: count }, (_, rank) =>
    makeRank(rank, { cell: 6 })
  );
}

function showRanks(ranks: IRank[]): void {
  const pool = makePool({ ranks, world_size: ranks.length });
  act(() => root.render(<RankList {...services} pool={pool} />));
}

/** Tiles, or squares. */
const items = () => [...host.querySelectorAll('ul > li, [role="option"]')];
const cell = (rank: number) =>
  host.querySelector<HTMLElement>(`[data-rank="${rank}"]`);

/** The panel's words for where a rank sits. */
const placeIn = (item: Element) =>
  item.querySelector('.jp-dist-RankTile-head > .jp-dist-quiet')?.textContent;

/** The items in which something changed meanwhile. */
async function changedItems(act: () => void): Promise<(string | null)[]> {
  const nodes = new Set<Element | null>();
  const observer = new MutationObserver(records =>
    records.forEach(({ target }) =>
      nodes.add(
        (target instanceof Element ? target : target.parentElement)!.closest(
          'li, [role="option"]'
        )
      )
    )
  );
  observer.observe(host, {
    subtree: true,
    childList: true,
    attributes: true,
    characterData: true
  });
  act();
  await Promise.resolve();
  observer.disconnect();
  return [...nodes].map(
    node =>
      /^Rank \d+/.exec(node?.getAttribute('aria-label') ?? '')?.[0] ?? null
  );
}

it.each<[string, Partial<IRank>, string]>([
  ['idle', {}, 'idle 5 min'],
  ['idle since a cell', { cell: 6 }, 'idle 5 min'],
  ['busy', { state: 'busy', cell: 7 }, 'busy [7] · 5 min'],
  ['busy without a cell', { state: 'busy' }, 'busy · 5 min'],
  ['dead', { state: 'dead', exit: 'exited' }, 'dead: exited']
])('a tile says that its rank is %s', (_, changes, words) => {
  showRanks([makeRank(0, { since: services.clock.now() - 301, ...changes })]);
  expect(items()[0].querySelector('.jp-dist-RankTile-state')?.textContent).toBe(
    words
  );
});

it('a tile says where its rank waits, and since when', () => {
  const wait = {
    call: 'all_reduce',
    line: 12,
    waiting_since: services.clock.now() - 9
  };
  stream.received.emit({ type: 'usage', pools: { p1: [makeUsage(0, wait)] } });
  showRanks([makeRank(0, { state: 'busy' })]);
  expect(items()[0].className).toMatch('jp-mod-waits');
  expect(items()[0].textContent).toMatch('waits in all_reduce · 9 s');
});

it('a tile says where the debugger has stopped its rank', () => {
  const stopped = { file: 'In[9]', line: 5 };
  const usage = makeUsage(0, { call: 'barrier', waiting_since: 1, stopped });
  stream.received.emit({ type: 'usage', pools: { p1: [usage] } });
  showRanks([makeRank(0, { state: 'busy' })]);
  expect(items()[0].textContent).toMatch('stopped · In[9] line 5');
});

describe.each([8, 128])('of %d ranks', count => {
  it('only the one that changed is drawn again', () => {
    const says = jest.spyOn(trans, '__');
    const drawn = () =>
      says.mock.calls.filter(([words]) => words === 'Rank %1').length;
    const ranks = makeRanks(count);
    showRanks(ranks);
    expect(items()).toHaveLength(count);
    expect(drawn()).toBe(count);
    const busy = ranks.map(rank =>
      rank.rank === 3 ? { ...rank, state: 'busy' as const, cell: 7 } : rank
    );
    showRanks(busy);
    expect(drawn()).toBe(count + 1);
    expect(items()[3].className).toMatch('jp-mod-busy');
  });

  it('what one of them uses moves nothing else', async () => {
    showRanks(makeRanks(count));
    const usages = Array.from({ length: count }, (_, i) => makeUsage(i));
    act(() => stream.received.emit({ type: 'usage', pools: { p1: usages } }));
    usages[5] = makeUsage(5, { cpu: 80 });
    const changed = await changedItems(() =>
      act(() => stream.received.emit({ type: 'usage', pools: { p1: usages } }))
    );
    expect(changed).toEqual(['Rank 5']);
  });
});

describe('more than 8 ranks', () => {
  it('are squares that say all by their names and titles', () => {
    const ranks = makeRanks(64);
    ranks[3] = makeRank(3, { state: 'dead', exit: 'killed' });
    showRanks(ranks);
    expect(host.querySelector('p')?.textContent).toBe('1 dead63 idle');
    expect(cell(3)?.getAttribute('aria-label')).toBe(
      'Rank 3 · dead: killed · CPU'
    );
    act(() => cell(2)?.focus());
    expect(cell(2)?.title).toMatch(/^Rank 2 · CPU\nidle \d+ .*\npid 1002$/);
  });

  it('are one stop of the keyboard, with arrows in between', () => {
    showRanks(makeRanks(20));
    const tabbable = () =>
      host.querySelectorAll('[role="option"][tabindex="0"]');
    expect([...tabbable()]).toEqual([cell(0)]);
    act(() => cell(0)?.focus());
    const press = (key: string) =>
      act(() => {
        const event = new KeyboardEvent('keydown', { key, bubbles: true });
        document.activeElement?.dispatchEvent(event);
      });
    const at = () => document.activeElement?.getAttribute('data-rank');
    for (const [key, rank] of [
      ['ArrowRight', '1'],
      ['End', '19'],
      ['ArrowRight', '19'],
      ['ArrowLeft', '18'],
      ['Home', '0'],
      ['ArrowUp', '0']
    ]) {
      press(key);
      expect(at()).toBe(rank);
    }
    expect([...tabbable()]).toEqual([cell(0)]);
    const opened = () => items().at(-1)?.getAttribute('aria-label');
    press('Enter');
    expect(opened()).toBe('Rank 0');
    expect(cell(0)?.getAttribute('aria-selected')).toBe('true');
    press('Escape');
    expect(opened()).toBe('Rank 19 · idle · CPU');
    act(() => cell(3)?.click());
    expect(opened()).toBe('Rank 3');
  });

  it.each([
    ['never_joined', 'did not join all_reduce #7', 'jp-mod-missing'],
    ['not_joined_yet', 'has not joined all_reduce #7 yet', 'jp-mod-missing'],
    ['mismatch', 'differs from the other ranks', 'jp-mod-missing'],
    ['order', 'idle', 'jp-mod-idle']
  ])('are marked where others wait for them: %s', (kind, words, mood) => {
    const ranks = makeRanks(16).map(rank =>
      rank.rank === 5 ? rank : { ...rank, state: 'busy' as const }
    );
    const verdict = {
      ...{ kind, sentence: '', hint: '', ranks: [5], stuck: true },
      ...{ remedies: [], op: 'all_reduce #7', since: 100 }
    };
    const pools = { p1: ranks.map(({ rank }) => makeUsage(rank)) };
    stream.received.emit({ type: 'usage', pools, verdicts: { p1: verdict } });
    showRanks(ranks);
    expect(cell(5)?.getAttribute('aria-label')).toContain(`Rank 5 · ${words}`);
    expect(cell(5)?.className).toMatch(mood);
    expect(cell(6)?.className).toMatch('jp-mod-busy');
  });

  it('stay in the order of Tab when the last ones are gone', () => {
    showRanks(makeRanks(40));
    act(() => cell(39)?.focus());
    showRanks(makeRanks(20));
    expect(cell(19)?.tabIndex).toBe(0);
  });
});

describe('a pool on several nodes', () => {
  it('names the node of each rank', () => {
    showRanks([
      makeRank(0, { node: 'node-1' }),
      makeRank(1, { node: 'node-2', device: 'cuda:0' })
    ]);
    expect(items().map(placeIn)).toEqual(['CPU on node-1', 'cuda:0 on node-2']);
  });

  it('groups the ranks of several nodes below their names', () => {
    showRanks([
      makeRank(0, { node: 'n1' }),
      makeRank(1, { node: 'n2' }),
      makeRank(2, { node: 'n2', state: 'dead', exit: 'killed' })
    ]);
    const heads = [...host.querySelectorAll('.jp-dist-NodeHead')];
    expect(heads.map(({ textContent }) => textContent)).toEqual([
      'n11 rank',
      'n22 ranks · 1 dead'
    ]);
    const lists = [...host.querySelectorAll('ul')];
    expect(lists.map(list => list.getAttribute('aria-label'))).toEqual([
      'Ranks of node n1',
      'Ranks of node n2'
    ]);
    expect(lists.map(({ children }) => children.length)).toEqual([1, 2]);
  });
});
