import type { IStateDB } from '@jupyterlab/statedb';

import { UiState } from '../model/uiState';
import { until } from './samples';

describe('UiState', () => {
  it('loses nothing when something is set before it has been read', async () => {
    const saved: unknown[] = [];
    const db = {
      fetch: () => Promise.resolve([['old', 1]]),
      save: (_: string, value: unknown) => {
        saved.push(value);
        return Promise.resolve();
      }
    } as unknown as IStateDB;
    const state = new UiState(db, 'key');
    state.set('new', 2);
    await until(() => saved.length > 0);
    expect(saved).toEqual([
      [
        ['old', 1],
        ['new', 2]
      ]
    ]);
    expect(state.get('old')).toBe(1);
  });

  it('keeps the newest, in the state of JupyterLab', async () => {
    const kept = new Map<string, unknown>();
    const db = {
      fetch: (key: string) => Promise.resolve(kept.get(key)),
      save: (key: string, value: unknown) => {
        kept.set(key, value);
        return Promise.resolve();
      }
    };
    const makeState = () => new UiState(db as never, 'key');
    const state = makeState();
    await state.ready;
    state.set('a', 1);
    state.set('b', 2);
    state.set('a', 3);
    for (let other = 0; other < 48; other++) {
      state.set(`${other}`, 0);
    }
    state.set('c', 4);
    await Promise.resolve();
    const later = makeState();
    later.set('c', 5);
    await later.ready;
    expect(['a', 'b', 'c'].map(name => later.get(name))).toEqual([
      3,
      undefined,
      5
    ]);
  });

  it('keeps only what may be kept', async () => {
    const saved: unknown[] = [];
    const db = {
      fetch: () => Promise.resolve(undefined),
      save: (_: string, value: unknown) => {
        saved.push(value);
        return Promise.resolve();
      }
    } as unknown as IStateDB;
    const state = new UiState(db, 'key', () => 'clean');
    await state.ready;
    state.set('new', 'secret');
    await until(() => saved.length === 1);
    expect(saved).toEqual([[['new', 'clean']]]);
    expect(state.get('new')).toBe('secret');
  });

  it('forgets and renames a folder with what is below it', () => {
    const state = new UiState(null, 'key');
    state.set('a/one', 1);
    state.set('ab', 2);
    state.set('b/one', 3);
    state.rename('a', 'b');
    expect(state.get('a/one')).toBeUndefined();
    expect(state.get('b/one')).toBe(1);
    state.forget('b');
    expect(state.get('b/one')).toBeUndefined();
    expect(state.get('ab')).toBe(2);
  });
});
