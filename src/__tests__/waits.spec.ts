import { Waits } from '../timeline/waits';
import { makeUsage } from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';

describe('the waits of a timeline', () => {
  const GPU = 'GPU-0';
  const since = (waiting_since: number) => {
    const gpu = { index: 0, label: '0', uuid: GPU, name: 'GPU' };
    const pool = makePool({ ranks: [makeRank(0, { state: 'busy', gpu })] });
    const model = makeModel({ pool, pools: new Map([['p1', pool]]) });
    const usage = makeUsage(0, { call: 'all_reduce', waiting_since });
    const rank = () => ({ usage, curve: [[], []] });
    return { ...model, telemetry: { ...model.telemetry, rank } } as never;
  };

  it('end where nobody looks any more, unless they go on', () => {
    const waits = new Waits();
    waits.add(since(100), 110);
    expect(waits.on(GPU)).toMatchObject([{ start: 100, end: null }]);
    waits.stop(112);
    const over = { start: 100, end: 112 };
    expect(waits.on(GPU)).toMatchObject([over]);
    const again = new Waits();
    again.add(since(100), 110);
    again.stop(112);
    // It has left the collective, at a time that nobody knows, and waits in the next one.
    waits.add(since(500), 505);
    expect(waits.on(GPU)).toMatchObject([over, { start: 500, end: null }]);
    again.add(since(100), 505);
    expect(again.on(GPU)).toMatchObject([{ start: 100, end: null }]);
  });
});
