import { CodeCell, CodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { NBTestUtils } from '@jupyterlab/notebook/lib/testutils';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import { FailureActions } from '../notebook/cells/failureActions';
import { emitChanged, makeModel, makePool, makeRank, until } from './samples';

/** A cell that a rank died in, and which is not drawn before it is scrolled to. */
function setUp() {
  const cell = new CodeCell({
    model: new CodeCellModel(),
    rendermime: NBTestUtils.defaultRenderMime(),
    contentFactory: NBTestUtils.createBaseCellFactory(),
    placeholder: true
  });
  const dead = makeRank(1, { state: 'dead', cell_id: cell.model.id });
  const pool = makePool({ ranks: [makeRank(0), dead] });
  const model = makeModel({ pools: new Map([['p1', pool]]) });
  const panel = {
    content: { widgets: [cell] },
    sessionContext: { session: { kernel: { id: 'k1' } } }
  } as unknown as NotebookPanel;
  const commands = new CommandRegistry();
  const actions = new FailureActions({ panel, model, commands });
  return { actions, cell, model };
}

describe('the buttons for a rank that died in a cell', () => {
  const buttons = () => [
    ...document.querySelectorAll<HTMLButtonElement>(
      '.jp-dist-FailureActions :is(jp-button, button)'
    )
  ];

  it('stand below its outputs, also in a cell that is drawn later', async () => {
    const { actions, cell } = setUp();
    actions.follow();
    Widget.attach(cell, document.body);
    await until(() => buttons().length > 0);
    const last = [...cell.node.children].at(-1);
    expect(last?.className).toContain('jp-dist-FailureActions');
    cell.dispose();
  });

  it('are off while they are being acted on', async () => {
    const { actions, cell, model } = setUp();
    Widget.attach(cell, document.body);
    actions.follow();
    await until(() => buttons().length > 0);
    const [restart] = buttons();
    expect(restart.disabled).toBe(false);
    Object.assign(model, { hasRequest: (id: string) => id === 'p1' });
    emitChanged(model);
    await until(() => restart.disabled);
    cell.dispose();
  });
});
