import { paint } from './paint';
import type { IScene, Stretch } from './paint';

/**
 * Pixels. A wider one takes longer to copy; but the browser looks at each of them whenever anything
 * on the page has changed.
 */
const WIDTH = 256;

/**
 * The drawn past, in pieces side by side that stay as they are while time moves them to the left.
 *
 * Without a GPU the browser copies a canvas whenever something on it has changed, in the page's own
 * thread; so all rows share the canvases, and only the last of these changes.
 */
export class Tiles {
  constructor(private readonly _parent: HTMLElement) {}

  /** Forget what is drawn. */
  clear(): void {
    this._stale = true;
  }

  /**
   * Show some pixels of the scene, and draw what is not there yet or has changed since.
   *
   * `changed` is the pixel from which on it has.
   */
  draw(scene: IScene, [from, to]: Stretch, rows: Stretch, changed: number) {
    const height = scene.curves.length * scene.rowHeight;
    const first = Math.floor(from / WIDTH);
    const last = Math.floor((to - 1) / WIDTH);
    const spare: HTMLCanvasElement[] = [];
    for (const [index, canvas] of this._tiles) {
      if (index < first || index > last) {
        this._tiles.delete(index);
        spare.push(canvas);
      }
    }
    for (let index = first; index <= last; index++) {
      const known = this._tiles.get(index);
      if (known && !this._stale && (index + 1) * WIDTH <= changed) {
        continue;
      }
      const canvas = known ?? spare.pop() ?? this._make();
      if (!known) {
        this._tiles.set(index, canvas);
        canvas.style.left = `${index * WIDTH}px`;
      }
      this._fit(canvas, height);
      const ctx = canvas.getContext('2d', { alpha: false });
      if (ctx) {
        const ratio = window.devicePixelRatio;
        ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
        const edge = index * WIDTH;
        const isOld = known && !this._stale;
        paint(
          ctx,
          scene,
          edge,
          [isOld ? Math.max(edge, Math.floor(changed)) : edge, edge + WIDTH],
          rows
        );
      }
    }
    spare.forEach(canvas => canvas.remove());
    this._stale = false;
  }

  private _make(): HTMLCanvasElement {
    const canvas = document.createElement('canvas');
    canvas.style.width = `${WIDTH}px`;
    return this._parent.appendChild(canvas);
  }

  private _fit(canvas: HTMLCanvasElement, height: number): void {
    const ratio = window.devicePixelRatio;
    const [wide, high] = [WIDTH * ratio, height * ratio].map(Math.round);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = `${height}px`;
    }
  }

  private readonly _tiles = new Map<number, HTMLCanvasElement>();
  private _stale = true;
}
