import { CellHistory } from '../model/cells';
import type { ICellRun } from '../model/cells';
import type { ICell } from '../model/cellContract';
import { Telemetry } from '../model/telemetry';
import { sayCell } from '../timeline/cellWords';
import { FakeStream, makeCell, makeUsage } from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';

/** A page's memory of cells, told all of them, then news. */
function follow(first: ICell[], ...news: ICell[][]) {
  const history = new CellHistory();
  history.take({ type: 'cells', complete: true, cells: first });
  for (const cells of news) {
    history.take({ type: 'cells', complete: false, cells });
  }
  return history;
}

const shown = ({ all }: CellHistory) =>
  all.map(({ id, start, end }) => [id, start, end]);

describe('cells', () => {
  it('last from the first rank to the last one', () => {
    const a = makeCell('a', [
      [10.2, 14],
      [10, 22.3]
    ]);
    const b = makeCell('b', [
      [30, null],
      [30, 31]
    ]);
    expect(shown(follow([b, a]))).toEqual([
      ['a', 10, 22.3],
      ['b', 30, null]
    ]);
  });

  it('are known by GPU too', () => {
    const on0 = makeCell('a', [[10, 14]], { cell: 6 });
    const onCpu = makeCell('b', []);
    onCpu.stretches.push({ rank: 0, gpu: null, start: 1, end: 2, lanes: null });
    expect(follow([on0, onCpu]).on('GPU-0')).toEqual([
      { rank: 0, gpu: 'GPU-0', cell: 6, start: 10, end: 14, lanes: null }
    ]);
  });

  it('change one by one, until all are told again', () => {
    const first = [makeCell('a', [[10, 20]]), makeCell('b', [[30, null]])];
    const news = [makeCell('b', [[30, 40]]), makeCell('c', [[50, null]])];
    const history = follow(first, news);
    expect(shown(history)).toEqual([
      ['a', 10, 20],
      ['b', 30, 40],
      ['c', 50, null]
    ]);
    // Another server does not know what came before.
    history.take({ type: 'cells', complete: true, cells: [news[1]] });
    expect(shown(history)).toEqual([['c', 50, null]]);
    expect(history.on('GPU-0')).toHaveLength(1);
  });

  it('are told apart by their pools', () => {
    const other = makeCell('a', [[12, 13]], { pool: 'p2' });
    expect(shown(follow([makeCell('a', [[10, 20]])], [other]))).toHaveLength(2);
  });

  it('are forgotten after an hour, unless they run', () => {
    const old = makeCell('a', [[10, 20]]);
    const running = makeCell('b', [[15, null]]);
    const history = follow([old, running], [makeCell('c', [[5000, null]])]);
    expect(shown(history).map(([id]) => id)).toEqual(['b', 'c']);
  });
});

describe('what is said of a cell', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const ranks = [0, 1].map(rank =>
    makeRank(rank, { state: 'busy', since: 200, cell: 7 })
  );
  const pools = new Map([['p1', makePool({ ranks })]]);
  const model = makeModel({ pools, telemetry });
  const name = 'work/train.ipynb';
  const say = (cell: ICell) => {
    const [run] = follow([cell]).all as [ICellRun];
    return sayCell(run, 241, model);
  };

  it('is how long it took, and where it ran', () => {
    const span: [number, number][] = [
      [100, 110],
      [130, 200]
    ];
    expect(say(makeCell('a', span, { cell: 6 })).parts).toEqual([
      '[6]',
      '1 min 40 s',
      'ranks 0–1'
    ]);
  });

  it('is who waits for whom while it runs', () => {
    stream.received.emit({
      type: 'usage',
      pools: {
        p1: [
          makeUsage(0, { call: 'all_reduce', waiting_since: 203 }),
          makeUsage(1)
        ]
      }
    });
    const span: [number, null][] = [
      [200, null],
      [200, null]
    ];
    const { parts, title } = say(makeCell('a', span, { cell: 7, name }));
    expect(parts).toEqual(['[7]', 'running 41 s', 'rank 0 waits for 1']);
    expect(title).toMatch(
      /^Cell \[7\] has been running on ranks 0–1 since .* Rank 0 waits for 1\. .* in work\/train\.ipynb\.$/
    );
  });
});
