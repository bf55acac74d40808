import type { Contents } from '@jupyterlab/services';

import { ApiError } from '../model/restClient';
import { makeModel, makeStart } from './samples';
import { SCHEMA } from './startSchema';

describe('StartModel', () => {
  it('has a draft for each notebook, which goes with its name', async () => {
    const notebook = {
      path: 'a.ipynb',
      kernelId: 'k1',
      sessionId: 'sk1',
      isPython: true
    };
    const model = makeModel({
      notebook,
      startSchema: () => Promise.resolve(SCHEMA)
    });
    const start = makeStart(model);
    start.change('a.ipynb', 'oversubscribe', true);
    start.change('a.ipynb', 'unknown', 1);
    start.change('b.ipynb', 'num_ranks', 4);
    expect(await start.choice('a.ipynb', 2)).toEqual({
      num_ranks: 2,
      oversubscribe: true
    });
    expect(await start.choice('b.ipynb', 2)).toEqual({ num_ranks: 4 });
    const signal = model.changed as unknown as { emit: () => void };
    signal.emit();
    Object.assign(model, { notebook: { ...notebook, path: 'c.ipynb' } });
    signal.emit();
    expect(start.draft('a.ipynb')).toEqual({});
    expect(start.draft('c.ipynb')).toMatchObject({ oversubscribe: true });
    // Another notebook with the same kernel has its own.
    const other = {
      ...notebook,
      path: 'b.ipynb',
      sessionId: 'sk2',
      isPython: true
    };
    Object.assign(model, { notebook: other });
    signal.emit();
    expect(start.draft('c.ipynb')).toMatchObject({ oversubscribe: true });
    expect(start.draft('b.ipynb')).toEqual({ num_ranks: 4 });
  });

  it('does not hand on what was chosen for a file to another one of its name', () => {
    const start = makeStart(makeModel());
    const file = (path: string) => ({ path }) as Contents.IModel;
    start.change('d/a.ipynb', 'oversubscribe', true);
    start.follow({
      type: 'rename',
      oldValue: file('d'),
      newValue: file('e')
    });
    expect(start.isChosen('e/a.ipynb')).toBe(true);
    start.follow({
      type: 'save',
      oldValue: null,
      newValue: file('e/a.ipynb')
    });
    expect(start.isChosen('e/a.ipynb')).toBe(true);
    start.follow({ type: 'delete', oldValue: file('e'), newValue: null });
    expect(start.isChosen('e/a.ipynb')).toBe(false);
    // It may have been deleted where nobody could tell.
    start.change('Untitled.ipynb', 'oversubscribe', true);
    start.follow({
      type: 'new',
      oldValue: null,
      newValue: file('Untitled.ipynb')
    });
    expect(start.isChosen('Untitled.ipynb')).toBe(false);
  });

  it('asks again after the server could not say what can be chosen', async () => {
    const startSchema = jest
      .fn()
      .mockRejectedValueOnce(
        new ApiError({ code: 'http_502', message: '', hint: '' }, 502)
      )
      .mockResolvedValue(SCHEMA);
    const start = makeStart(makeModel({ startSchema }));
    await start.load();
    expect(Object.keys(start.schema.properties)).toEqual(['num_ranks']);
    await start.load();
    await start.load();
    expect(start.schema).toBe(SCHEMA);
    expect(startSchema).toHaveBeenCalledTimes(2);
  });
});
