import type { ICellRun } from '../model/cells';
import { chipsIn, fitLabel } from '../timeline/chips';
import { nearest, Scale } from '../timeline/scale';
import { makeCell } from './gpuSamples';

/** Pixel 0 is at 1000 s, and each is a second. */
const SCALE = new Scale(1000, 1);

let count = 0;

function makeRun(from: number, to: number | null, pool = 'p1'): ICellRun {
  const [start, end] = [1000 + from, to === null ? null : 1000 + to];
  return { ...makeCell(`${count++}`, [[start, end]], { pool }), start, end };
}

const places = (...cells: ICellRun[]) =>
  chipsIn(cells, SCALE, [100, 400]).map(({ left, right, room, lane }) => [
    left,
    right,
    room,
    lane
  ]);

describe('what stands above the curves', () => {
  it('is where the cell is, as far as it can be seen', () => {
    expect(
      places(
        makeRun(10, 90),
        makeRun(50, 140),
        makeRun(200, 250),
        makeRun(380, null),
        makeRun(500, 600)
      )
    ).toEqual([
      [100, 140, 200, 0],
      [200, 250, 380, 0],
      [380, 400, 400, 0]
    ]);
  });

  it('has a lane for each notebook, whatever its pools', () => {
    const other = { ...makeRun(130, 190, 'p2'), name: 'other.ipynb' };
    const again = makeRun(195, 200, 'p3');
    const all = [makeRun(120, 160), other, makeRun(170, 180), again];
    expect(places(...all)).toEqual([
      [120, 160, 170, 0],
      [170, 180, 195, 0],
      [195, 200, 400, 0],
      [130, 190, 400, 1]
    ]);
  });

  it('leaves the room to the next where cells overlap', () => {
    expect(places(makeRun(120, 200), makeRun(150, 160))).toEqual([
      [120, 200, 150, 0],
      [150, 160, 400, 0]
    ]);
  });

  it('is one for many cells that are too narrow to tell apart', () => {
    const short = [120, 123, 126, 129].map(start => makeRun(start, start + 1));
    const [chip, next] = chipsIn(
      [...short, makeRun(150, 151)],
      SCALE,
      [100, 400]
    );
    expect(chip.cells).toHaveLength(4);
    expect([chip.left, chip.right]).toEqual([120, 131]);
    expect(next.cells).toHaveLength(1);
  });

  it('says as much as there is room for, and never half a word', () => {
    const fit = (room: number) =>
      fitLabel(['[6]', '3 min', 'ranks 0–3'], room, 5, text => text.length);
    expect(fit(2)).toEqual([]);
    expect(fit(12)).toEqual(['[6]']);
    expect(fit(13)).toEqual(['[6]', '3 min']);
    expect(fit(27)).toEqual(['[6]', '3 min', 'ranks 0–3']);
  });
});

it('the value under a cursor is the nearest', () => {
  const times = [10, 20, 30];
  expect([5, 14, 16, 29, 99].map(time => nearest(times, time))).toEqual([
    0, 0, 1, 2, 2
  ]);
  expect(nearest([], 5)).toBe(-1);
});
