import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type {
  ICells,
  ICellStretch,
  IPool,
  IRank,
  RankState
} from '../model/contract';
import { Telemetry } from '../model/telemetry';
import { Bands, endOf } from '../timeline/bands';
import { sayBand } from '../timeline/bandWords';
import { EarlierCells } from '../timeline/earlier';
import type { Connection, IPoolsModel } from '../model/tokens';
import { FakeStream, makeUsage } from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';
import type { IFakeModel } from './samples';

const gpu = (index: number) => ({
  index,
  label: `${index}`,
  uuid: `GPU-${index}`,
  name: 'H100'
});

function follow(changes: Partial<IFakeModel> = {}) {
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
  const since: number[] = [];
  bands.changed.connect((_, from) => since.push(from));
  return { bands, model, pools, changed, say, since };
}

/** What the server tells of a pool: rank, cell, start, end of each stretch. */
function cells(
  ...all: [number, number | null, number, number | null][]
): ICells {
  const stretches = all.map(([rank, cell, start, end]): ICellStretch => ({
    rank,
    gpu: `GPU-${rank}`,
    cell,
    cell_id: null,
    start,
    end
  }));
  const pool = { id: 'p1', kernel_id: 'k1', name: 'a.ipynb', stretches };
  return { pools: [pool] };
}

/** Cell, start and end of each band, and how many ranks it has. */
const shown = ({ all }: Bands) =>
  all.map(band => [band.cell, band.start, endOf(band), band.stretches.length]);

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
      {
        ...{ rank: 0, gpu: 'GPU-0', cell: null, cell_id: null },
        ...{ start: 10, end: 14 }
      }
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

describe('bands that the server tells of', () => {
  it('are those of pools that nobody has seen here', () => {
    const { bands, since } = follow();
    bands.merge(cells([0, 6, 10, 14], [1, 6, 10.1, 15], [0, 7, 14, 20]));
    expect(shown(bands)).toEqual([
      [6, 10, 15, 2],
      [7, 14, 20, 1]
    ]);
    expect(bands.all[0]).toMatchObject({ path: 'a.ipynb', kernelId: 'k1' });
    expect(bands.on('GPU-0').map(({ start }) => start)).toEqual([10, 14]);
    expect(since).toEqual([10]);
  });

  it('are not there twice', () => {
    const { bands, say, since } = follow();
    say(['busy', 10], ['busy', 10.2]);
    say(['idle', 14], ['busy', 10.2]);
    since.length = 0;
    bands.merge(cells([0, null, 10, 14], [1, null, 10.2, null]));
    bands.merge(cells([0, null, 10, 14], [1, null, 10.2, 15]));
    expect(shown(bands)).toEqual([[null, 10, null, 2]]);
    expect(since).toEqual([]);
    say(['idle', 14], ['idle', 15]);
    expect(shown(bands)).toEqual([[null, 10, 15, 2]]);
  });

  it('have the ranks that were done before, and stay the same', () => {
    const { bands, say, since } = follow();
    say(['idle', 4], ['busy', 3]);
    const [{ id }] = bands.all;
    bands.merge(cells([0, null, 3, 4], [1, null, 1, 2], [1, null, 3, null]));
    expect(shown(bands)).toEqual([
      [null, 1, 2, 1],
      [null, 3, null, 2]
    ]);
    expect(bands.all[1].id).toBe(id);
    expect(bands.all[0].id).not.toBe(id);
    expect(since).toEqual([3, 1]);
    say(['idle', 4], ['idle', 9]);
    expect(endOf(bands.all[1])).toBe(9);
    expect(bands.on('GPU-1').map(({ end }) => end)).toEqual([2, 9]);
  });

  it('replace what was not seen exactly, and leave other pools alone', () => {
    const { bands, pools, changed, say, since } = follow();
    const ranks = [makeRank(0, { state: 'busy', since: 15, gpu: gpu(0) })];
    pools.set('p2', makePool({ id: 'p2', ranks }));
    say(['busy', 10]);
    // What came between has not been told.
    say(['busy', 30]);
    since.length = 0;
    bands.merge(cells([0, 6, 10, 12], [0, 7, 20, 25], [0, 8, 30, null]));
    expect(shown(bands)).toEqual([
      [6, 10, 12, 1],
      [null, 15, null, 1],
      [7, 20, 25, 1],
      [null, 30, null, 1]
    ]);
    expect(bands.on('GPU-0').map(({ end }) => end)).toEqual([
      12,
      null,
      25,
      null
    ]);
    expect(since).toEqual([10]);
    pools.delete('p2');
    changed.emit();
    expect(endOf(bands.all[1])).not.toBeNull();
  });

  it('are left to the stream while they run', () => {
    const { bands, say } = follow();
    bands.merge(cells([0, null, 10, null]));
    expect(bands.all).toHaveLength(0);
    say(['busy', 10]);
    bands.merge(cells([0, null, 10, 11]));
    expect(shown(bands)).toEqual([[null, 10, null, 1]]);
    say(['idle', 11]);
    expect(shown(bands)).toEqual([[null, 10, 11, 1]]);
  });

  it('go on if the server was started anew meanwhile', () => {
    const { bands, pools, changed, say } = follow();
    say(['busy', 10]);
    const pool = pools.get('p1')!;
    pools.clear();
    changed.emit();
    expect(endOf(bands.all[0])).not.toBeNull();
    // The rank itself says since when, which is not to the millisecond what the old server saw.
    pools.set('p1', {
      ...pool,
      ranks: [{ ...pool.ranks[0], since: 9.99 }]
    });
    changed.emit();
    expect(shown(bands)).toEqual([[null, 9.99, null, 1]]);
    // The new server does not know what came before.
    bands.merge({ pools: [] });
    expect(bands.all).toHaveLength(1);
  });
});

describe('earlier cells', () => {
  it('are not said to be missing because an answer came too late', async () => {
    const { bands, changed, ...others } = follow();
    const model: IFakeModel & { connection: Connection } = others.model;
    let refuse: (reason: Error) => void = () => undefined;
    const loadCells = jest.fn(async () => cells([0, 6, 10, 14]));
    loadCells.mockReturnValueOnce(
      new Promise((_, reject) => (refuse = reject))
    );
    const past = { load: jest.fn(), loadCells };
    const earlier = new EarlierCells(model, bands, past);
    earlier.isWanted = true;
    model.connection = { state: 'stale', since: 0 };
    changed.emit();
    model.connection = { state: 'live' };
    changed.emit();
    await new Promise(process.nextTick);
    refuse(new Error('Gone.'));
    await new Promise(process.nextTick);
    expect(loadCells).toHaveBeenCalledTimes(2);
    expect(bands.all).toHaveLength(1);
    expect(earlier.error).toBeNull();
  });

  it('are asked for once somebody looks, and again after a loss', async () => {
    const { bands, changed, ...others } = follow({
      connection: { state: 'connecting' }
    });
    const model: IFakeModel & { connection: Connection } = others.model;
    const set = (state: 'live' | 'stale') => {
      model.connection = state === 'live' ? { state } : { state, since: 0 };
      changed.emit();
    };
    const loadCells = jest.fn(async () => cells([0, 6, 10, 14]));
    const earlier = new EarlierCells(model, bands, {
      load: jest.fn(),
      loadCells
    });
    earlier.isWanted = true;
    expect(loadCells).not.toHaveBeenCalled();
    set('live');
    set('live');
    expect(loadCells).toHaveBeenCalledTimes(1);
    await new Promise(process.nextTick);
    expect(bands.all).toHaveLength(1);
    earlier.isWanted = false;
    earlier.isWanted = true;
    expect(loadCells).toHaveBeenCalledTimes(1);
    earlier.isWanted = false;
    set('stale');
    set('live');
    expect(loadCells).toHaveBeenCalledTimes(1);
    loadCells.mockRejectedValueOnce(new Error('Forbidden.'));
    earlier.isWanted = true;
    expect(loadCells).toHaveBeenCalledTimes(2);
    await new Promise(process.nextTick);
    expect(earlier.error).toBe('Forbidden.');
    set('stale');
    set('live');
    await new Promise(process.nextTick);
    expect(loadCells).toHaveBeenCalledTimes(3);
    expect(earlier.error).toBeNull();
    earlier.dispose();
    set('stale');
    set('live');
    expect(loadCells).toHaveBeenCalledTimes(3);
  });
});
