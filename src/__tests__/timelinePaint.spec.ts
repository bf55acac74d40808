import type { IStretch } from '../timeline/bands';
import { paint } from '../timeline/paint';
import type { IScene } from '../timeline/paint';
import { Scale } from '../timeline/scale';

const band = (start: number, end: number | null): IStretch => ({
  rank: 0,
  gpu: 'GPU-0',
  cell: 1,
  start,
  end
});

/** The rectangles of the bands, and the points of the line, drawn between two pixels. */
function draw(from: number, to: number, bands: IStretch[], values: number[]) {
  const rects: number[][] = [];
  const points: number[][] = [];
  const add = (x: number, y: number) => points.push([x, y]);
  Object.assign(globalThis, {
    Path2D: class {
      moveTo = add;
      lineTo = add;
    }
  });
  const ctx = new Proxy({} as Record<string, unknown>, {
    get: (_, name) =>
      name === 'rect'
        ? (x: number, _: number, width: number) => rects.push([x, width])
        : () => undefined,
    set: () => true
  });
  const scene: IScene = {
    scale: new Scale(0, 1),
    times: values.map((_, index) => index * 10),
    curves: [{ values, top: 100, bands, colours: { line: '', area: '' } }],
    tickStep: 60,
    rowHeight: 101,
    colours: {} as IScene['colours']
  };
  paint(
    ctx as unknown as CanvasRenderingContext2D,
    scene,
    0,
    [from, to],
    [0, 1]
  );
  // The first one is what is drawn anew.
  return { bands: rects.slice(1), points };
}

describe('the curves', () => {
  it('have the bands that are in sight, however short', () => {
    const all = [
      band(0, 40),
      band(45, 60),
      band(70, 70.2),
      band(90, null),
      band(200, 300)
    ];
    expect(draw(50, 100, all, []).bands).toEqual([
      [50, 10],
      [70, 1],
      [90, 10]
    ]);
  });

  it('are drawn where something is new, up to one value beyond', () => {
    const { points } = draw(20, 40, [], [0, 10, 20, 30, 40, 50, 60]);
    expect(points).toEqual([
      [10, 90],
      [20, 80],
      [30, 70],
      [40, 60]
    ]);
  });
});
