import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { IPool, IRank, RankState } from '../model/contract';
import { Telemetry } from '../model/telemetry';
import { Bands, endOf } from '../timeline/bands';
import { sayBand } from '../timeline/bandWords';
import type { IPoolsModel } from '../tokens';
import { FakeStream, makeUsage } from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';

const gpu = (index: number) => ({
  index,
  label: `${index}`,
  uuid: `GPU-${index}`,
  name: 'H100'
});

function follow(changes: Partial<IPoolsModel> = {}) {
  const changed = new Signal<IPoolsModel, void>({} as IPoolsModel);
  const pools = new Map<string, IPool>();
  const model = makeModel({ changed, pools, ...changes });
  const bands = new Bands(model);
  /** Says the state of each rank and since when. */
  const say = (...ranks: [RankState, number][]) => {
    pools.set(
      'p1',
      makePool({
        ranks: ranks.map(([state, since], rank) =>
          makeRank(rank, { state, since, gpu: gpu(rank) })
        )
      })
    );
    changed.emit();
  };
  return { bands, model, pools, changed, say };
}

describe('bands', () => {
  it('say which ranks were busy together, and where', () => {
    const { bands, model, say } = follow();
    say(['idle', 1], ['idle', 1]);
    expect(bands.all).toHaveLength(0);
    say(['busy', 10], ['idle', 1]);
    say(['busy', 10], ['busy', 10.2]);
    expect(bands.all).toHaveLength(1);
    expect(endOf(bands.all[0])).toBeNull();
    say(['idle', 14], ['busy', 10.2]);
    say(['idle', 14], ['idle', 22.3]);
    expect(endOf(bands.all[0])).toBe(22.3);
    expect(bands.on('GPU-0')).toEqual([
      { rank: 0, gpu: 'GPU-0', cell: null, start: 10, end: 14 }
    ]);
    const trans = nullTranslator.load('');
    expect(sayBand(bands.all[0], 100, model, trans).parts).toEqual([
      '12 s',
      'ranks 0–1'
    ]);
  });

  it('are one for each cell, also if nobody saw the rank idle', () => {
    const { bands, say } = follow();
    say(['busy', 10]);
    say(['busy', 11]);
    say(['dead', 30]);
    expect(bands.all.map(band => [band.start, endOf(band)])).toEqual([
      [10, 11],
      [11, 30]
    ]);
  });

  it('have the number of their cell, and say who waits for whom', () => {
    const stream = new FakeStream();
    const { bands, model, pools, changed } = follow({
      telemetry: new Telemetry(stream)
    });
    const ranks = (cell: number, ...since: number[]) =>
      since.map((since, rank) =>
        makeRank(rank, { state: 'busy', since, cell, gpu: gpu(rank) })
      );
    const say = (...all: IRank[]) => {
      pools.set('p1', makePool({ name: 'work/train.ipynb', ranks: all }));
      changed.emit();
    };
    const since: number[] = [];
    bands.changed.connect((_, from) => since.push(from));
    // A rank may come much later to the same cell; another cell is another band.
    say(...ranks(6, 100, 130));
    expect(bands.all.map(({ cell }) => cell)).toEqual([6]);
    say(...ranks(7, 200, 200));
    expect(bands.all.map(({ cell }) => cell)).toEqual([6, 7]);
    expect(since).toEqual([100, 200]);
    stream.received.emit({
      type: 'usage',
      pools: {
        p1: [
          makeUsage(0, { call: 'all_reduce', waiting_since: 203 }),
          makeUsage(1)
        ]
      }
    });
    const trans = nullTranslator.load('');
    const words = sayBand(bands.all[1], 241, model, trans);
    expect(words.parts).toEqual(['[7]', 'running 41 s', 'rank 0 waits for 1']);
    expect(words.title).toMatch(
      /^Cell \[7\] runs on ranks 0–1 since .* rank 0 waits for 1\. .* in work\/train\.ipynb\.$/
    );
    expect(sayBand(bands.all[0], 241, model, trans).parts).toEqual([
      '[6]',
      '1 min 40 s',
      'ranks 0–1'
    ]);
  });

  it('end with their pool', () => {
    const { bands, pools, changed, say } = follow();
    say(['busy', 10]);
    pools.set('p1', { ...pools.get('p1')!, ended: 17 });
    changed.emit();
    expect(endOf(bands.all[0])).toBe(17);
    say(['busy', 20]);
    pools.clear();
    changed.emit();
    expect(endOf(bands.all[1])).toBeGreaterThanOrEqual(20);
  });

  it('are forgotten after an hour', () => {
    const { bands, say } = follow();
    say(['busy', 10]);
    say(['idle', 20]);
    say(['busy', 5000]);
    expect(bands.all.map(({ start }) => start)).toEqual([5000]);
    expect(bands.on('GPU-0')).toHaveLength(1);
  });
});
