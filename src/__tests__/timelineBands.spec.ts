import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { IPool, RankState } from '../model/contract';
import { Bands, endOf } from '../timeline/bands';
import { sayBand } from '../timeline/bandWords';
import type { IPoolsModel } from '../tokens';
import { makeModel, makePool, makeRank } from './samples';

const gpu = (index: number) => ({
  index,
  label: `${index}`,
  uuid: `GPU-${index}`,
  name: 'H100'
});

function follow() {
  const changed = new Signal<IPoolsModel, void>({} as IPoolsModel);
  const pools = new Map<string, IPool>();
  const model = makeModel({ changed, pools });
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
