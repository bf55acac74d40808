import React, { act } from 'react';

import { ApiError } from '../model/restClient';
import type { IVariable, IVariables } from '../model/variablesContract';
import type { IPanelServices } from '../panel/services';
import {
  VariablesSection,
  VariablesSummary
} from '../panel/variables/variablesSection';
import { emitChanged, makePool, makeRank } from './samples';
import type { IFakeModel, Changes } from './samples';
import { button, host, press, show } from './screen';
import {
  makeForm,
  makeVariable,
  makeVariables,
  MODEL,
  OWN
} from './variableSamples';

function Part(services: IPanelServices): JSX.Element {
  services.variables.watch();
  return (
    <>
      <h3>
        <VariablesSummary {...services} />
      </h3>
      <VariablesSection {...services} />
    </>
  );
}

/** Shows the section once there is an answer. */
async function showList(
  list: IVariables,
  changes: Changes = {}
): Promise<IFakeModel> {
  const model = show(
    { pool: makePool(), variables: () => Promise.resolve(list), ...changes },
    Part
  );
  await settled();
  return model;
}

function settled(): Promise<void> {
  return drawn(() => !host.textContent?.includes('Reading'));
}

/** Waits until this is so; React draws at the end of each look. */
async function drawn(isTrue: () => boolean): Promise<void> {
  const end = Date.now() + 60_000;
  while (!isTrue()) {
    expect(Date.now()).toBeLessThan(end);
    await act(() => new Promise(resolve => setTimeout(resolve, 10)));
  }
}

const names = () =>
  [...host.querySelectorAll('tbody th')].map(node => node.textContent);
const body = (name: string) =>
  [...host.querySelectorAll('tbody')].find(
    node => node.querySelector('th')?.textContent === name
  );
const lines = (name: string) =>
  [...(body(name)?.querySelectorAll('td:only-child > div') ?? [])].map(
    ({ textContent }) => textContent
  );
const cells = (name: string) =>
  [...(body(name)?.querySelectorAll('tr:first-child > td') ?? [])].map(
    ({ textContent }) => textContent
  );

it('says what each variable is, and whether it is the same', async () => {
  await showList(makeVariables([MODEL, makeVariable('x'), OWN]));
  expect(host.querySelector('h3')?.textContent).toBe('3 · 1 differs');
  expect(cells('model')).toEqual(['3.0 MiB', 'differs']);
  expect(lines('model')).toEqual([
    'Net · 7 items · float32 · cpu',
    'model.w differs on rank 1 since In[4].',
    '2 more differ.'
  ]);
  expect(body('model')?.querySelector('code')?.textContent).toBe('model.w');
  expect(cells('x')).toEqual(['24 B', 'equal']);
  expect(lines('x')).toEqual(['Tensor (2, 3) · float32 · cpu']);
  expect(cells('own')).toEqual(['24 B', 'rank 1']);
  expect(lines('own')).toEqual(['Rank 1: Tensor () · float32 · cpu']);
});

it('says what a variable is on which ranks, and who holds which part', async () => {
  const devices = ['cuda:0', 'cuda:1', 'cuda:2'];
  const parts = [0, 1].map(rank =>
    makeForm({
      ranks: [rank],
      type: 'DTensor',
      shard: `[${rank}:${rank + 1}, 0:3]`,
      devices: [`cuda:${rank}`]
    })
  );
  const forms = [0, 1, 2, 3, 4, 5].map(rank =>
    makeForm({ ranks: [rank], shape: [rank] })
  );
  const list: IVariable[] = [
    makeVariable('parts', { content: 'sharded', forms: parts }),
    makeVariable('many', { content: 'differs', forms }),
    makeVariable('wide', { forms: [makeForm({ devices })] })
  ];
  await showList(makeVariables(list));
  expect(lines('parts')).toEqual([
    'DTensor (2, 3) · float32',
    'Rank 0: [0:1, 0:3] · cuda:0',
    'Rank 1: [1:2, 0:3] · cuda:1'
  ]);
  expect(lines('wide')).toEqual(['Tensor (2, 3) · float32 · cuda:0 … cuda:2']);
  expect(lines('many')).toHaveLength(4);
  press('Show 2 more');
  expect(lines('many')).toHaveLength(6);
});

it('is sorted as the user likes', async () => {
  await showList(makeVariables([makeVariable('a', { nbytes: 1 }), MODEL, OWN]));
  const order = () =>
    [...host.querySelectorAll('th[aria-sort]')].map(node =>
      node.getAttribute('aria-sort')
    );
  expect(names()).toEqual(['a', 'model', 'own']);
  expect(order()).toEqual(['ascending', 'none', 'none']);
  press('Name');
  expect(names()).toEqual(['own', 'model', 'a']);
  press('Memory');
  expect(names()).toEqual(['model', 'own', 'a']);
  expect(order()).toEqual(['none', 'descending', 'none']);
  press('Content');
  expect(names()).toEqual(['model', 'own', 'a']);
});

it('shows those that match the filter, by name or type', async () => {
  await showList(makeVariables([MODEL, makeVariable('x'), OWN]));
  const type = (words: string) =>
    act(() => {
      const field = host.querySelector('input')!;
      // React looks whether the value is another one.
      Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )!.set!.call(field, words);
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
  type('NET');
  expect(names()).toEqual(['model']);
  type('x');
  expect(names()).toEqual(['x']);
  type('nothing');
  expect(names()).toEqual([]);
  expect(host.textContent).toContain('No variable matches “nothing”.');
});

it('shows a hundred of many', async () => {
  const many = Array.from({ length: 130 }, (_, i) => makeVariable(`v${i}`));
  await showList(makeVariables(many));
  expect(names()).toHaveLength(100);
  press('Show 30 more');
  expect(names()).toHaveLength(130);
});

it('Check says what it has found', async () => {
  const sentences = ['All 3 tensors are equal on ranks 0-1.'];
  const list = makeVariables([makeVariable('x', { content: 'unchecked' })]);
  const checkVariables = () =>
    Promise.resolve(makeVariables([makeVariable('x')], { sentences }));
  await showList(list, { checkVariables });
  expect(cells('x')[1]).toBe('not compared');
  act(() => button('Check').click());
  expect(button('Checking…').getAttribute('aria-disabled')).toBe('true');
  await drawn(() => cells('x')[1] === 'equal');
  expect(host.querySelector('[role="status"]')?.textContent).toBe(sentences[0]);
});

it('marks a list that may be old, also for screen readers', async () => {
  const model = await showList(makeVariables([MODEL]));
  const isBusy = () => host.querySelector('table')?.getAttribute('aria-busy');
  expect(isBusy()).toBe('false');
  const ranks = [makeRank(0, { state: 'busy' }), makeRank(1)];
  Object.assign(model, { pool: makePool({ ranks }) });
  act(() => emitChanged(model));
  expect(isBusy()).toBe('true');
});

it('reads them again when the server is back', async () => {
  const error = { code: 'unreachable', message: 'It is away.', hint: '' };
  const variables = jest
    .fn()
    .mockRejectedValueOnce(new ApiError(error, 0))
    .mockResolvedValue(makeVariables([makeVariable('x')]));
  const model = show({ pool: makePool(), variables }, Part);
  await drawn(() => Boolean(host.textContent?.includes('It is away.')));
  Object.assign(model, { connection: { state: 'stale' } });
  act(() => emitChanged(model));
  expect(host.textContent).toBe('');
  Object.assign(model, { connection: { state: 'live' } });
  act(() => emitChanged(model));
  await drawn(() => names().length === 1);
  expect(host.querySelector('[role="alert"]')).toBeNull();
});

describe('says', () => {
  const busy = makePool({
    ranks: [makeRank(0), makeRank(1, { state: 'busy' })]
  });

  it('that ranks run a cell', async () => {
    const list = makeVariables([OWN], { ranks: [0], busy: [1] });
    await showList(list, { pool: busy });
    expect(host.textContent).toContain('Rank 1 runs a cell.');
    expect(names()).toEqual(['own']);
  });

  it('that ranks do not respond, or are dead', async () => {
    await showList(makeVariables([], { ranks: [], silent: [0, 1], dead: [2] }));
    expect(host.textContent).toContain('Ranks 0–1 do not respond');
    expect(host.textContent).toContain('Rank 2 is dead.');
  });

  it('that there are none', async () => {
    await showList(makeVariables([]));
    expect(host.textContent).toContain('The ranks have no variables yet.');
    expect(host.querySelector('h3')?.textContent).toBe('');
  });

  it('that they are being read', () => {
    show({ pool: makePool() }, Part);
    expect(host.textContent).toContain('Reading the variables…');
  });

  it('that no ranks run', () => {
    show({ pool: makePool({ state: 'COMPLETED', ended: 1 }) }, Part);
    expect(host.textContent).toBe(
      'The variables of running ranks are listed here.'
    );
  });

  it('what went wrong, with a way to try again', async () => {
    const hint = 'Try it.';
    const error = { code: 'value_failed', message: 'It failed.', hint };
    let hasFailed = false;
    const variables = () => {
      const answer = hasFailed
        ? Promise.resolve(makeVariables([makeVariable('x')]))
        : Promise.reject(new ApiError(error, 400));
      hasFailed = true;
      return answer;
    };
    show({ pool: makePool(), variables }, Part);
    await settled();
    expect(host.querySelector('[role="alert"]')?.textContent).toBe(
      'It failed.Try it.Check again'
    );
    press('Check again');
    await drawn(() => names().length === 1);
  });
});
