import type { JupyterFrontEnd } from '@jupyterlab/application';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';

import schema from '../../schema/plugin.json';
import { codePlugin } from '../notebook/code/plugin';
import { CommandIDs, PANEL_ID } from '../model/tokens';
import { makeModel } from './samples';

it('code from the context menu comes from the panel alone', async () => {
  document.body.innerHTML = `
    <div id="${PANEL_ID}"><p data-dist-code="ours"></p></div>
    <div class="jp-OutputArea"><p data-dist-code="hostile"></p></div>`;
  const [ours, hostile] = document.querySelectorAll<HTMLElement>('p');
  const item = schema['jupyter.lab.menus'].context.find(
    ({ command }) => command === CommandIDs.insertCode
  );
  expect(ours.matches(item!.selector)).toBe(true);
  expect(hostile.matches(item!.selector)).toBe(false);

  const inserted: unknown[] = [];
  const content = {
    widgets: [],
    activeCell: null,
    deselectAll: jest.fn(),
    model: {
      sharedModel: {
        insertCell: (_: number, cell: { source: string }) =>
          inserted.push(cell.source)
      }
    }
  };
  const commands = new CommandRegistry();
  let clicked = hostile;
  const app = {
    commands,
    shell: { activateById: jest.fn() },
    contextMenuHitTest: (is: (node: HTMLElement) => boolean) =>
      is(clicked) ? clicked : undefined
  };
  const tracker = {
    currentWidget: { id: 'n1', content },
    currentChanged: new Signal({}),
    widgetAdded: new Signal({})
  };
  void codePlugin.activate(
    app as unknown as JupyterFrontEnd,
    tracker,
    makeModel(),
    nullTranslator
  );
  await commands.execute(CommandIDs.insertCode);
  expect(inserted).toEqual([]);
  clicked = ours;
  await commands.execute(CommandIDs.insertCode);
  expect(inserted).toEqual(['ours']);
});
