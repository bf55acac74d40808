import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import { UiState } from '../model/uiState';
import { VariablesModel } from '../model/variables';
import { Telemetry } from '../model/telemetry';
import { Clock } from '../ui/clock';
import { DistPanel } from '../panel/panel';
import { FakeStream } from './gpuSamples';
import { makeModel, makeStart } from './samples';

beforeAll(() => {
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

it('the panel asks for readings only while it can be seen', () => {
  const stream = new FakeStream();
  const model = makeModel({ telemetry: new Telemetry(stream) });
  const services = {
    model,
    current: model,
    start: makeStart(model),
    variables: new VariablesModel(model, model),
    uiState: new UiState(null, ''),
    commands: new CommandRegistry(),
    clock: new Clock(),
    trans: nullTranslator.load('')
  };
  const panel = new DistPanel(services, nullTranslator);
  panel.hide();
  Widget.attach(panel, document.body);
  expect(stream.watched).toEqual([]);
  panel.show();
  panel.hide();
  panel.show();
  expect(stream.watched).toEqual([['gpus'], [], ['gpus']]);
  panel.hide();
  Widget.detach(panel);
  expect(stream.watched.at(-1)).toEqual([]);
});
