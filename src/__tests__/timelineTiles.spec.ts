import type { IPaintOrder, Order } from '../timeline/orders';
import type { IScene } from '../timeline/paint';
import { queue } from '../timeline/queue';
import { Scale } from '../timeline/scale';
import { Tiles } from '../timeline/tiles';

HTMLCanvasElement.prototype.transferControlToOffscreen = () =>
  ({}) as OffscreenCanvas;

const SECONDS = 600;
const times = Array.from({ length: SECONDS }, (_, time) => time);
const band = (start: number, end: number | null) => ({
  rank: 0,
  gpu: null,
  cell: 1,
  start,
  end
});
const curve = {
  values: times,
  top: SECONDS,
  bands: [band(10, 20), band(290, 310), band(590, null)],
  colours: { line: '', area: '' }
};
const scene: IScene = {
  scale: new Scale(0, 1),
  times,
  curves: [curve, curve],
  tickStep: 60,
  rowHeight: 100,
  colours: { background: '', band: '', grid: '', border: '' }
};

/** Tiles whose orders are kept in place of being drawn. */
function make() {
  const orders: Order[] = [];
  const parent = document.createElement('div');
  const tiles = new Tiles(parent, {
    obey: order => orders.push(order),
    dispose: () => undefined
  });
  const draw = (from: number, to: number, changed = Infinity) => {
    orders.length = 0;
    tiles.draw(scene, [from, to], [0, 1], changed);
    return orders.filter((one): one is IPaintOrder => one.type === 'paint');
  };
  return { parent, tiles, draw, orders };
}

const stretches = (orders: IPaintOrder[]) =>
  orders.map(({ edge, stretch }) => [edge, ...stretch]);

describe('orders that wait', () => {
  const whole = (id: number, start = 0): Order => ({
    ...make().draw(0, 100)[0],
    id,
    stretch: [start, 128]
  });
  const words = (isAll: boolean): Order => ({
    type: 'write',
    id: 3,
    width: 1,
    height: 1,
    ratio: 1,
    isAll,
    words: [],
    colours: { text: '', quiet: '', font: '' }
  });
  const take = (id: number): Order => ({
    type: 'take',
    id,
    canvas: {} as OffscreenCanvas
  });

  it('are left out if a later one draws over them', () => {
    const all = [
      take(1),
      whole(1),
      whole(1, 100),
      take(2),
      whole(2),
      words(true),
      words(false)
    ];
    const waiting = all.reduce<Order[]>(queue, []);
    expect(waiting).toEqual(all);
    const again = whole(1);
    expect(queue(waiting, again)).toEqual([
      take(1),
      take(2),
      all[4],
      ...all.slice(5),
      again
    ]);
    expect(queue(waiting, words(true))).toEqual([
      ...all.slice(0, 5),
      words(true)
    ]);
    const gone: Order = { type: 'forget', id: 2 };
    expect(queue(waiting, gone)).toEqual([
      ...all.slice(0, 4),
      ...all.slice(5),
      gone
    ]);
  });
});

describe('the tiles', () => {
  it('are drawn once, and from there on where something is new', () => {
    const { draw, tiles } = make();
    expect(stretches(draw(0, 300))).toEqual([
      [0, 0, 128],
      [128, 128, 256],
      [256, 256, 384]
    ]);
    expect(draw(0, 300)).toEqual([]);
    expect(stretches(draw(6, 306, 297.5))).toEqual([[256, 297, 384]]);
    // A band that ended a while ago.
    expect(stretches(draw(6, 306, 200))).toEqual([
      [128, 200, 256],
      [256, 256, 384]
    ]);
    tiles.clear();
    expect(draw(6, 306)).toHaveLength(3);
  });

  it('leave when they are out of sight, and are forgotten', () => {
    const { parent, draw, orders } = make();
    draw(0, 300);
    const [first] = orders;
    expect(parent.childElementCount).toBe(3);
    expect(stretches(draw(200, 500))).toEqual([[384, 384, 512]]);
    expect(orders).toContainEqual({ type: 'forget', id: first.id });
    expect(parent.childElementCount).toBe(3);
  });

  it('come with only what is needed to draw them', () => {
    const { draw } = make();
    draw(0, 300);
    const [{ part, rows }] = draw(0, 300, 298);
    expect(rows).toEqual([0, 1]);
    // One value beyond either side of what is drawn: 297 to 384.
    expect(part.times[0]).toBe(296);
    expect(part.times.at(-1)).toBe(384);
    expect(part.curves[0].values).toEqual(part.times);
    expect(part.curves[0].bands).toEqual([{ start: 290, end: 310 }]);
    // The second row is scrolled away.
    expect(part.curves[1].values).toEqual([]);
    expect(JSON.parse(JSON.stringify(part))).toEqual(part);
  });
});
