import type { NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import type { IPool } from '../model/contract';
import { warmUpCompletion } from '../notebook/cells/plugin';
import { makeAttachment, makeModel, makePool } from './samples';

function setUp(pool: IPool | null) {
  const model = makeModel();
  const pools = new Map(pool ? [[pool.id, pool]] : []);
  Object.defineProperty(model, 'pools', { get: () => pools });
  const asked: string[] = [];
  const requestComplete = ({ code }: { code: string }) => {
    asked.push(code);
    return Promise.reject(new Error('The kernel is gone.'));
  };
  const owner = {};
  const content = {
    mode: 'edit',
    activeCell: null as object | null,
    stateChanged: new Signal<object, unknown>(owner),
    activeCellChanged: new Signal<object, unknown>(owner),
    modelContentChanged: new Signal<object, unknown>(owner)
  };
  // A signal's sender is what listeners are given.
  Object.assign(owner, content);
  const sessionContext = { session: { kernel: { id: 'k1', requestComplete } } };
  warmUpCompletion(
    { content, sessionContext } as unknown as NotebookPanel,
    model
  );
  const edit = (source: string, mode = 'edit') => {
    const sharedModel = { getSource: () => source };
    Object.assign(owner, {
      mode,
      activeCell: { model: { type: 'code', sharedModel } }
    });
    content.modelContentChanged.emit(null);
  };
  return { asked, edit, pools };
}

it('asks a rank for a completion when a cell for it is edited, once', () => {
  const { asked, edit, pools } = setUp(makePool());
  edit('%%distributed', 'command');
  edit('x = 1');
  edit('');
  expect(asked).toEqual([]);
  edit('%%distributed -q\nx = 1');
  edit('%%distributed -q\nx = 12');
  edit('%%distributed\ny');
  expect(asked).toEqual(['%%distributed -q\ntorch.']);
  edit('# why\n%%rank 1\ny');
  edit('%%rank 1\ny');
  expect(asked).toEqual(['%%distributed -q\ntorch.', '%%rank 1\ntorch.']);
  // New ranks have not completed anything yet.
  pools.set('p1', makePool({ generation: 7 }));
  edit('%%distributed\ny');
  expect(asked).toHaveLength(3);
});

it('asks where all cells run on ranks', () => {
  const { asked, edit } = setUp(
    makePool({ attachments: [makeAttachment({ mode: true })] })
  );
  edit('%dist_status');
  edit('x');
  expect(asked).toEqual(['torch.']);
});

it('asks before the first cell has run on ranks that the panel has started', () => {
  const { asked, edit } = setUp(makePool({ attachments: [] }));
  edit('%%distributed\nx');
  expect(asked).toEqual(['%%distributed\ntorch.']);
});

it('asks nobody where no ranks run', () => {
  for (const pool of [null, makePool({ state: 'CONFIGURING' })]) {
    const { asked, edit } = setUp(pool);
    edit('%%distributed\nx');
    expect(asked).toEqual([]);
  }
});
