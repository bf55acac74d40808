import type { IBand } from '../timeline/bands';
import { chipsIn, fitLabel } from '../timeline/chips';
import { nearest, Scale } from '../timeline/scale';

/** Pixel 0 is at 1000 s, and each is a second. */
const SCALE = new Scale(1000, 1);

let count = 0;

function makeBand(start: number, end: number | null, pool = 'p1'): IBand {
  return {
    id: count++,
    pool,
    path: `work/${pool}.ipynb`,
    kernelId: 'k1',
    cell: count,
    cellId: null,
    start: 1000 + start,
    stretches: [
      {
        rank: 0,
        gpu: 'GPU-0',
        cell: count,
        cell_id: null,
        start: 1000 + start,
        end: end === null ? null : 1000 + end
      }
    ]
  };
}

const places = (...bands: IBand[]) =>
  chipsIn(bands, SCALE, [100, 400]).map(({ left, right, room, lane }) => [
    left,
    right,
    room,
    lane
  ]);

describe('what stands above the curves', () => {
  it('is where the cell is, as far as it can be seen', () => {
    expect(
      places(
        makeBand(10, 90),
        makeBand(50, 140),
        makeBand(200, 250),
        makeBand(380, null),
        makeBand(500, 600)
      )
    ).toEqual([
      [100, 140, 140, 0],
      [200, 250, 250, 0],
      [380, 400, 400, 0]
    ]);
  });

  it('has a lane for each pool', () => {
    const all = [
      makeBand(120, 160),
      makeBand(130, 190, 'p2'),
      makeBand(170, 180)
    ];
    expect(places(...all)).toEqual([
      [120, 160, 160, 0],
      [170, 180, 180, 0],
      [130, 190, 190, 1]
    ]);
  });

  it('leaves the room to the next where cells overlap', () => {
    expect(places(makeBand(120, 200), makeBand(150, 160))).toEqual([
      [120, 200, 150, 0],
      [150, 160, 160, 0]
    ]);
  });

  it('is one for many cells that are too narrow to tell apart', () => {
    const short = [120, 123, 126, 129].map(start => makeBand(start, start + 1));
    const [chip, next] = chipsIn(
      [...short, makeBand(150, 151)],
      SCALE,
      [100, 400]
    );
    expect(chip.bands).toHaveLength(4);
    expect([chip.left, chip.right]).toEqual([120, 131]);
    expect(next.bands).toHaveLength(1);
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
