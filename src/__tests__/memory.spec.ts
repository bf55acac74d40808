import type { IStateDB } from '@jupyterlab/statedb';

import { Memory } from '../model/uiState';
import { until } from './samples';

describe('Memory', () => {
  it('loses nothing when something is set before it has been read', async () => {
    const saved: unknown[] = [];
    const db = {
      fetch: () => Promise.resolve([['old', 1]]),
      save: (_: string, value: unknown) => {
        saved.push(value);
        return Promise.resolve();
      }
    } as unknown as IStateDB;
    const memory = new Memory(db, 'key');
    memory.set('new', 2);
    await until(() => saved.length > 0);
    expect(saved).toEqual([
      [
        ['old', 1],
        ['new', 2]
      ]
    ]);
    expect(memory.get('old')).toBe(1);
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
    const makeMemory = () => new Memory(db as never, 'key', { most: 2 });
    const memory = makeMemory();
    await memory.ready;
    memory.set('a', 1);
    memory.set('b', 2);
    memory.set('a', 3);
    memory.set('c', 4);
    await Promise.resolve();
    const later = makeMemory();
    later.set('c', 5);
    await later.ready;
    expect(['a', 'b', 'c'].map(name => later.get(name))).toEqual([
      3,
      undefined,
      5
    ]);
  });

  it('keeps only what may be kept, and cleans what an earlier version has kept', async () => {
    const saved: unknown[] = [];
    const db = {
      fetch: () => Promise.resolve([['old', 'secret']]),
      save: (_: string, value: unknown) => {
        saved.push(value);
        return Promise.resolve();
      }
    } as unknown as IStateDB;
    const memory = new Memory(db, 'key', { toKeep: () => 'clean' });
    await memory.ready;
    expect(saved).toEqual([[['old', 'clean']]]);
    expect(memory.get('old')).toBe('clean');
    memory.set('old', 'another secret');
    memory.set('new', 'secret');
    await until(() => saved.length === 2);
    expect(saved[1]).toEqual([
      ['old', 'clean'],
      ['new', 'clean']
    ]);
    expect(memory.get('new')).toBe('secret');
    // A keystroke that changes nothing of what is kept is not written.
    memory.set('new', 'secrets');
    await new Promise(resolve => setTimeout(resolve));
    expect(saved).toHaveLength(2);
  });

  it('forgets and renames a folder with what is below it', () => {
    const memory = new Memory(null, 'key');
    memory.set('a/one', 1);
    memory.set('ab', 2);
    memory.set('b/one', 3);
    memory.rename('a', 'b');
    expect(memory.get('a/one')).toBeUndefined();
    expect(memory.get('b/one')).toBe(1);
    memory.forget('b');
    expect(memory.get('b/one')).toBeUndefined();
    expect(memory.get('ab')).toBe(2);
  });
});
