import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import type { AccordionPanel } from '@lumino/widgets';

import { UiState } from '../model/uiState';
import { VariablesModel } from '../model/variables';
import { Telemetry } from '../model/telemetry';
import { Clock } from '../ui/clock';
import { DistPanel } from '../panel/panel';
import { FakeStream } from './gpuSamples';
import { makeModel, makeStart, until } from './samples';

beforeAll(() => {
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

function makePanel(stream: FakeStream, restored: Promise<unknown>): DistPanel {
  const model = makeModel({ telemetry: new Telemetry(stream) });
  const services = {
    model,
    current: model,
    start: makeStart(model),
    variables: new VariablesModel(model, model.requests),
    uiState: new UiState(null, ''),
    commands: new CommandRegistry(),
    clock: new Clock()
  };
  return new DistPanel(services, nullTranslator, restored);
}

it('sections are as the user left them, whatever JupyterLab restores', async () => {
  let restore = () => {};
  const restored = new Promise<void>(resolve => (restore = resolve));
  const { content } = makePanel(new FakeStream(), restored);
  const open = () => content.widgets.map(({ isHidden }) => !isHidden);
  await new Promise(resolve => setTimeout(resolve));
  // As JupyterLab 4.2 does where another panel was in front.
  content.widgets.forEach((_, index) =>
    (content as AccordionPanel).collapse(index)
  );
  restore();
  await until(() => open().includes(true));
  expect(open()).toEqual([true, true, false, false, false]);
});

it('the panel asks for readings only while it can be seen', () => {
  const stream = new FakeStream();
  const panel = makePanel(stream, Promise.resolve());
  panel.hide();
  Widget.attach(panel, document.body);
  expect(stream.watched).toEqual([]);
  panel.show();
  panel.hide();
  panel.show();
  const all = ['agents', 'gpus'];
  expect(stream.watched).toEqual([all, [], all]);
  panel.hide();
  Widget.detach(panel);
  expect(stream.watched.at(-1)).toEqual([]);
});
