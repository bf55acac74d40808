import type { MainAreaWidget } from '@jupyterlab/apputils';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { act } from 'react';

import { Telemetry } from '../model/telemetry';
import { timelinePlugin } from '../timeline/plugin';
import type { Timeline } from '../timeline/timeline';
import { CommandIDs } from '../model/tokens';
import type { IPoolsModel } from '../model/tokens';
import {
  FakeStream,
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeProcess
} from './gpuSamples';
import { makeModel, makePool, makeRank, until } from './samples';
import type { IFakeModel } from './samples';

// A page without pixels: what is drawn is looked at in the browser tests.
const nothing = () => undefined;
const image = (width: number, height: number) => ({
  width,
  height,
  data: new Uint8ClampedArray(4 * width * height)
});
const drawn: string[] = [];
const context = new Proxy(
  {
    measureText: () => ({ width: 10 }),
    fillText: (text: string) => drawn.push(text),
    createImageData: image,
    getImageData: () => image(1, 1)
  } as Record<string, unknown>,
  {
    get: (known, name: string) => known[name] ?? nothing,
    set: (known, name, value) => Reflect.set(known, name, value)
  }
);
// Nor has it a layout.
Object.defineProperties(HTMLElement.prototype, {
  clientWidth: { get: () => 900 },
  clientHeight: { get: () => 400 }
});
HTMLCanvasElement.prototype.getContext = function (this: HTMLCanvasElement) {
  context.canvas = this;
  return context;
} as unknown as HTMLCanvasElement['getContext'];
Object.assign(globalThis, {
  matchMedia: () => ({
    addEventListener: nothing,
    removeEventListener: nothing
  }),
  IS_REACT_ACT_ENVIRONMENT: true
});

const PAST = {
  step: 1,
  times: [998, 999],
  gpus: { 'GPU-0': { utilization: [10, 20], power: [70, 71] } }
};

let opened: MainAreaWidget<Timeline> | null = null;
let stream: FakeStream;

async function open(
  changes: Partial<IFakeModel> = {},
  args: { metric?: string; minutes?: number } = {},
  labShell: object | null = {},
  isThere: (area: string) => boolean = () => true
) {
  stream = new FakeStream();
  const pools = makeModel({
    changed: new Signal<IPoolsModel, void>({} as IPoolsModel),
    telemetry: new Telemetry(stream),
    gpus: makeInventory(),
    ...changes
  });
  const urls: string[] = [];
  const serverSettings = ServerConnection.makeSettings({
    fetch: async input => {
      const { url } = input as Request;
      urls.push(url);
      return new Response(JSON.stringify(PAST));
    }
  });
  const commands = new CommandRegistry();
  const launched: object[] = [];
  const areas: string[] = [];
  const shell = {
    add: (widget: Widget, area: string) => {
      areas.push(area);
      if (isThere(area)) {
        Widget.attach(widget, document.body);
      }
    },
    activateById: nothing
  };
  const app = { commands, shell, serviceManager: { serverSettings } };
  const launcher = { add: (item: object) => launched.push(item) };
  stream.received.emit(makeGpusMessage());
  stream.received.emit({
    type: 'sample',
    time: 1000,
    values: { utilization: [91, 3], power_limit: [700, 700] }
  });
  void timelinePlugin.activate(
    app as unknown as JupyterFrontEnd,
    pools,
    pools,
    nullTranslator,
    { find: nothing },
    launcher,
    null,
    null,
    labShell
  );
  await act(async () => {
    opened = await commands.execute(CommandIDs.openTimeline, args);
  });
  return { widget: opened!, commands, launched, urls, areas };
}

afterEach(() => {
  act(() => opened?.dispose());
  opened = null;
});

const labels = () =>
  [...document.querySelectorAll('.jp-dist-Timeline-rows [role=img]')].map(
    node => node.getAttribute('aria-label')
  );
const tell = async (time: number, utilization: number[]) => {
  stream.received.emit({ type: 'sample', time, values: { utilization } });
};

describe('the GPU timeline', () => {
  it('stands in the main area, or below the notebook where that has a page of its own', async () => {
    expect((await open()).areas).toEqual(['main']);
    act(() => opened?.dispose());
    expect((await open({}, {}, null)).areas).toEqual(['down']);
  });

  it('stands beside the notebook in Notebook 7.2, which has nothing below it', async () => {
    const { areas } = await open({}, {}, null, area => area !== 'down');
    expect(areas).toEqual(['down', 'right']);
    expect(opened?.isAttached).toBe(true);
  });

  it('says of each GPU who has it, and its newest value', async () => {
    const pool = makePool({ ranks: [makeRank(0, { gpu: GPU_0 })] });
    const { launched, urls } = await open({
      pools: new Map([[pool.id, pool]]),
      pool
    });
    expect(launched).toEqual([
      { command: CommandIDs.openTimeline, category: 'Other' }
    ]);
    expect(urls[0]).toMatch(/jupyter-dist\/gpus\/history\?since=-900&step=1\b/);
    await until(
      () =>
        labels()[0] ===
        'GPU 0 · rank 0 · utilization: 20 % · memory: – / 80 GiB'
    );
    await tell(1001, [55, 4]);
    await until(
      () =>
        labels()[0] ===
        'GPU 0 · rank 0 · utilization: 55 % · memory: – / 80 GiB'
    );
    expect(labels()[1]).toBe('GPU 1 · utilization: 4 % · memory: – / 80 GiB');
  });

  it('folds the free GPUs into a line', async () => {
    await open();
    const fold = document.querySelector<HTMLButtonElement>(
      '.jp-dist-Timeline-fold'
    )!;
    await until(() => labels().length === 2);
    // Where nothing is in use, there is nothing to leave them out of.
    expect(fold.hidden).toBe(true);
    const gpus = { 'GPU-0': [makeProcess()], 'GPU-1': [] };
    stream.received.emit({ type: 'processes', gpus });
    await until(() => labels().length === 1);
    expect(fold.textContent).toBe('1 free GPU: 1');
    expect(fold.getAttribute('aria-expanded')).toBe('false');
    act(() => fold.click());
    await until(() => labels().length === 2);
    expect(fold.getAttribute('aria-expanded')).toBe('true');
    act(() => opened!.content.model.choose({ selection: 'own' }));
    await until(() => fold.hidden);
  });

  it('is opened once, as it was left', async () => {
    const { widget, commands, urls } = await open(
      {},
      { metric: 'power', minutes: 60 }
    );
    expect(widget.content.model.choice.metric).toBe('power');
    expect(urls.at(-1)).toMatch(/since=-3600&step=4\b/);
    await until(
      () => labels()[0] === 'GPU 0 · power: 71 W · memory: – / 80 GiB'
    );
    expect(await commands.execute(CommandIDs.openTimeline)).toBe(widget);
    const choice = (name: string) =>
      document.querySelector<HTMLSelectElement>(`select[aria-label=${name}]`);
    expect(choice('Metric')?.value).toBe('power');
    expect(choice('Range')?.value).toBe('60');
  });

  it('zooms with the keyboard', async () => {
    const { widget } = await open();
    const { model } = widget.content;
    await until(
      () => labels()[0] === 'GPU 0 · utilization: 20 % · memory: – / 80 GiB'
    );
    const press = (key: string) =>
      act(() => {
        widget.content.node.dispatchEvent(
          new KeyboardEvent('keydown', { key })
        );
      });
    press('+');
    const [begin, end] = model.view;
    expect(end - begin).toBeCloseTo(450);
    press('ArrowLeft');
    expect(model.view[0]).toBeLessThan(begin);
    press('0');
    expect(model.isZoomed).toBe(false);
  });

  it.each([
    [
      { gpus: makeInventory({ gpus: [], reason: 'No driver is loaded.' }) },
      'No GPUs to showNo driver is loaded.'
    ],
    [{ gpus: null }, 'Looking for GPUs…'],
    [
      { gpus: null, connection: { state: 'missing' } as const },
      'The server extension is not enabled'
    ]
  ])('says why it shows nothing: %#', async (changes, text) => {
    await open(changes);
    const empty = document.querySelector('.jp-dist-Timeline-empty');
    await until(() => empty?.textContent?.startsWith(text) === true);
    expect(labels()).toEqual([]);
  });
});
