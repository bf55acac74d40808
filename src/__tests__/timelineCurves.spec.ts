import { paintCurves } from '../timeline/curves';
import type { ICurves } from '../timeline/curves';
import { Scale } from '../timeline/scale';
import { withOneTop } from '../timeline/scene';
import type { IRowWords } from '../timeline/scene';

/** One letter for each pixel. */
const [NOTHING, BAND, GRID, BOTH] = [...'.bg#'].map(letter =>
  letter.charCodeAt(0)
);
const LANES = [...'wwwwccccccccmmmmmmmm'].map(letter => letter.charCodeAt(0));
const behind = [NOTHING, BAND, GRID, BOTH, ...LANES];
const area = [...'aA+*'].map(letter => letter.charCodeAt(0));

type Curve = Partial<ICurves['curves'][0]>;

/** What is drawn, line by line, and the points of the lines. */
function paint(
  curves: Curve[],
  {
    height = 6,
    width = 8,
    ...changes
  }: Partial<ICurves> & {
    height?: number;
    width?: number;
  } = {}
) {
  const image = {
    width,
    height,
    data: new Uint8ClampedArray(4 * width * height)
  } as ImageData;
  const points: number[][] = [];
  const add = (x: number, y: number) => points.push([x, y]);
  const context: Record<string, unknown> = { moveTo: add, lineTo: add };
  const ctx = new Proxy(context, {
    get: (known, name: string) => known[name] ?? (() => undefined)
  });
  paintCurves(
    ctx as unknown as CanvasRenderingContext2D,
    image,
    [0, 0],
    {
      scale: new Scale(0, 1),
      times: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      curves: curves.map(curve => ({
        values: [],
        top: 5,
        bands: [],
        waits: [],
        lanes: [],
        colours: { line: '', area },
        ...curve
      })),
      grid: [],
      isOverlay: false,
      rowHeight: 6,
      scrolled: 0,
      ratio: 1,
      ...changes
    },
    { behind, edge: '_'.charCodeAt(0) }
  );
  const pixels = [...new Uint32Array(image.data.buffer)];
  const text = String.fromCharCode(...pixels);
  const lines = text.match(new RegExp(`[^]{${width}}`, 'g'));
  return { lines, points, context };
}

describe('the curves', () => {
  it('have an area below, and a gap where nothing is known', () => {
    const values = [1, 1, 3, 3, null, null, 2, 2, 2];
    expect(paint([{ values }]).lines).toEqual([
      '........',
      '........',
      '..a.....',
      '.aa...aa',
      'aaa...aa',
      '________'
    ]);
  });

  it('have the bands that are in sight, however short, and the grid', () => {
    const bands = [
      { start: -5, end: -1 },
      { start: -1, end: 2 },
      { start: 3.1, end: 3.2 },
      { start: 6, end: null }
    ];
    const { lines } = paint([{ bands, values: [1, 1, 1] }], { grid: [1, 4] });
    expect(lines?.[0]).toBe('b#.bg.bb');
    expect(lines?.[4]).toBe('A*.bg.bb');
    expect(paint([{ bands }, {}], { height: 9 }).lines?.slice(5)).toEqual([
      '________',
      '........',
      '........',
      '........'
    ]);
  });

  it('have the waits on the bands', () => {
    const bands = [{ start: 1, end: 6 }];
    const waits = [{ start: 3, end: 5 }];
    const { lines } = paint([{ bands, waits }]);
    expect(lines?.[0]).toBe('.bbwwb..');
  });

  it('have what most of each pixel was in a profiled cell', () => {
    const bands = [{ start: 0, end: 8 }];
    const lanes = [
      {
        compute: [[1, 2.6]],
        communication: [[3, 3.2]],
        waiting: [
          [2.6, 3],
          [3.2, 6],
          [7.9, 20]
        ],
        seconds: { compute: 1.6, communication: 0.2, waiting: 15.3 }
      }
    ] as const;
    const { lines } = paint([{ bands, lanes }]);
    expect(lines?.[0]).toBe('bccwwwbb');
    expect(paint([{ bands, lanes }], { isOverlay: true }).lines?.[0]).toBe(
      '........'
    );
  });

  it('are all in one row, with nothing but the lines, if that is wanted', () => {
    const bands = [{ start: 1, end: 6 }];
    const rows = [{ bands, values: [1, 1, 1] }, { values: [2, 2] }];
    const { lines, points } = paint(rows, { isOverlay: true, grid: [4] });
    expect(lines).toEqual([...Array<string>(5).fill('....g...'), '________']);
    expect(points).toHaveLength(5);
  });

  it('are cut off where they are scrolled away', () => {
    const values = [0, 0, 0, 0, 0, 0, 0, 0, 0];
    const rows = [{}, { values }, {}];
    const { lines, points } = paint(rows, { scrolled: 7, height: 4 });
    expect(lines).toEqual(['........', '........', '........', '........']);
    expect(paint(rows, { scrolled: 9, height: 3 }).lines).toEqual([
      '........',
      '........',
      '________'
    ]);
    expect(points[0]).toEqual([0, 3.5]);
  });

  it('begin one value before the left edge, and end one after the right', () => {
    const values = [0, 1, 2, 3, 4, 5, 4, 3, 2];
    const { points } = paint([{ values }], {
      scale: new Scale(2.5, 1),
      width: 3
    });
    expect(points.map(([x]) => x)).toEqual([-0.5, 0.5, 1.5, 2.5, 3.5]);
  });

  it('have lines of whole pixels, whatever the screen', () => {
    expect(paint([{}], { ratio: 1.5 }).context.lineWidth).toBe(1);
    expect(paint([{}], { ratio: 2 }).context.lineWidth).toBe(2);
  });
});

describe('the scale', () => {
  it('moves by whole pixels while time goes on', () => {
    const now = 1_763_800_000.123;
    const [first, second] = [0, 1.017].map(later =>
      Scale.over([now + later - 900, now + later], 1283)
    );
    expect(second.perPixel).toBe(first.perPixel);
    const moved = first.place(now) - second.place(now);
    expect(moved).toBeCloseTo(Math.round(moved), 3);
    expect(Math.abs(second.place(now + 1.017) - 1283)).toBeLessThan(1);
  });
});

describe('curves in one chart', () => {
  it('are drawn to one scale', () => {
    const [small, large] = [
      { top: 24, topLabel: '24 GiB' },
      { top: 80, topLabel: '80 GiB' }
    ] as IRowWords[];
    expect(withOneTop([small, large])).toEqual([large, large]);
    expect(withOneTop([])).toEqual([]);
  });
});
