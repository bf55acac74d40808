import { Signal } from '@lumino/signaling';

import { Telemetry } from '../model/telemetry';
import { TimelineModel } from '../timeline/model';
import type { IGpuHistory } from '../model/gpuContract';
import { makeTable } from '../timeline/table';
import type { IPoolsModel } from '../model/tokens';
import { FakeStream, makeGpusMessage, makeInventory } from './gpuSamples';
import { makeModel } from './samples';

const NOW = 1_000_000;

function makeTimeline() {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const changed = new Signal<IPoolsModel, void>({} as IPoolsModel);
  const pools = makeModel({ changed, telemetry, gpus: makeInventory() });
  const asked: [number, number][] = [];
  const answers: ((history: IGpuHistory | Error) => void)[] = [];
  const model = new TimelineModel(pools, pools, {
    gpuHistory: (since, step) => {
      asked.push([since, step]);
      return new Promise((resolve, reject) =>
        answers.push(answer =>
          answer instanceof Error ? reject(answer) : resolve(answer)
        )
      );
    }
  });
  stream.received.emit(makeGpusMessage());
  const sample = (time: number, value: number) =>
    stream.received.emit({
      type: 'sample',
      time,
      values: { utilization: [value, 0] }
    });
  const answer = async (history: IGpuHistory | Error) => {
    answers.shift()?.(history);
    await new Promise(process.nextTick);
  };
  const values = () => model.recording.column('GPU-0', 'utilization');
  return { model, stream, asked, sample, answer, values };
}

const PAST: IGpuHistory = {
  step: 1,
  times: [NOW - 2, NOW - 1],
  gpus: { 'GPU-0': { utilization: [10, 20] } }
};

describe('timeline', () => {
  it('begins with the first value, if it is to', async () => {
    const { model, answer, sample } = makeTimeline();
    model.isShown = true;
    await answer(PAST);
    sample(NOW + 60, 30);
    const end = model.view[1];
    expect(model.view[0]).toBe(end - 900);
    model.choose({ isFitted: true });
    expect(model.view).toEqual([NOW - 2, end]);
    model.choose({ minutes: 1 });
    await answer(PAST);
    expect(model.view[1] - model.view[0]).toBeLessThanOrEqual(60);
  });

  it('knows what was before it was shown, then goes on live', async () => {
    const { model, stream, asked, sample, answer, values } = makeTimeline();
    expect(stream.watched).toEqual([]);
    model.isShown = true;
    expect(stream.watched.at(-1)).toEqual(['cells', 'gpus']);
    expect(asked).toEqual([[-900, 1]]);
    sample(NOW, 30);
    await answer(PAST);
    sample(NOW + 1, 40);
    expect(values()).toEqual([10, 20, 30, 40]);
    const [begin, end] = model.view;
    expect(end - begin).toBe(900);
    expect(end).toBeGreaterThanOrEqual(NOW + 1);
  });

  it('does nothing while it is hidden', async () => {
    const { model, stream, asked, sample, answer, values } = makeTimeline();
    model.isShown = true;
    await answer(PAST);
    model.isShown = false;
    expect(stream.watched.at(-1)).toEqual([]);
    const changed = jest.fn();
    model.changed.connect(changed);
    sample(NOW, 30);
    expect(values()).toEqual([10, 20]);
    expect(changed).not.toHaveBeenCalled();
    model.isShown = true;
    expect(asked).toHaveLength(2);
  });

  it('stays as it is while paused, and asks for what it missed', async () => {
    const { model, asked, sample, answer, values } = makeTimeline();
    model.isShown = true;
    await answer(PAST);
    model.isPaused = true;
    const { view } = model;
    sample(NOW + 60, 30);
    expect(values()).toEqual([10, 20]);
    expect(model.view).toEqual(view);
    model.isPaused = false;
    expect(asked).toHaveLength(2);
  });

  it('zooms within what there is', async () => {
    const { model, asked, sample, answer } = makeTimeline();
    model.isShown = true;
    await answer(PAST);
    const [begin, end] = model.view;
    model.zoomBy(2, (begin + end) / 2);
    expect(model.view).toEqual([begin + 225, end - 225]);
    sample(NOW + 100, 30);
    model.move(10);
    expect(model.view).toEqual([end - 450, end]);
    model.zoomTo(end - 1, end);
    expect(model.view).toEqual([end - 5, end]);
    model.zoomBy(1 / 1000, end);
    expect(model.isZoomed).toBe(false);
    expect(asked).toHaveLength(2);
  });

  it('asks for another range, no finer than pixels', async () => {
    const { model, asked, answer } = makeTimeline();
    model.isShown = true;
    model.choose({ minutes: 60 });
    expect(asked.at(-1)).toEqual([-3600, 4]);
    // The answer to the first question comes too late.
    await answer(PAST);
    expect(model.recording.times).toEqual([]);
    await answer({ ...PAST, times: [NOW - 3000], gpus: {} });
    expect(model.recording.times).toEqual([NOW - 3000]);
  });

  it('makes a table of what is visible', async () => {
    const { model, answer } = makeTimeline();
    model.isShown = true;
    await answer({
      ...PAST,
      gpus: {
        'GPU-0': { utilization: [10, 20.123456], memory_used: [2 ** 30] }
      }
    });
    const [titles, ...lines] = makeTable(model).trim().split('\n');
    expect(titles).toBe(
      'timestamp,gpu,uuid,ranks,cell,utilization.gpu [%],memory.used [MiB],power.draw [W],temperature.gpu'
    );
    expect(lines).toEqual([
      '1970-01-12T13:46:38.000Z,0,GPU-0,,,10,1024,,',
      '1970-01-12T13:46:39.000Z,0,GPU-0,,,20.12,,,'
    ]);
    model.zoomTo(NOW - 60, NOW - 30);
    expect(makeTable(model).trim().split('\n')).toHaveLength(1);
  });

  it('says why there is no past', async () => {
    const { model, sample, answer, values } = makeTimeline();
    model.isShown = true;
    await answer(new Error('Forbidden.'));
    expect(model.error).toBe('Forbidden.');
    sample(NOW, 30);
    expect(values()).toEqual([30]);
  });
});
