import type { IStateDB } from '@jupyterlab/statedb';

import { Memory } from '../model/memory';
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

  it('forgets the oldest', () => {
    const memory = new Memory(null, 'key', 2);
    ['a', 'b', 'a', 'c'].forEach((name, value) => memory.set(name, value));
    expect(['a', 'b', 'c'].map(name => memory.get(name))).toEqual([
      2,
      undefined,
      3
    ]);
  });
});
