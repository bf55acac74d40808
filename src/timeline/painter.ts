import type { IPaintOrder, IWords, IWriteOrder, Order } from './orders';
import { paint } from './paint';
import { Scale } from './scale';
import { LINE, TEXT, VALUE_WIDTH, WORDS_WIDTH } from './sizes';

/** Draws what it is told to, on the canvases that it was given. */
export interface IPainter {
  obey(order: Order): void;
  dispose(): void;
}

/**
 * Draws wherever it is, which is a worker: a browser without a GPU takes longer to draw and to show
 * 16 curves than the page has time for.
 */
export class Painter implements IPainter {
  obey(order: Order): void {
    switch (order.type) {
      case 'take':
        this._canvases.set(order.id, order.canvas);
        return;
      case 'forget':
        this._forget(order.id);
        return;
      case 'paint':
        this._paint(order);
        return;
      case 'write':
        this._write(order);
    }
  }

  dispose(): void {
    this._canvases.clear();
  }

  private _forget(id: number): void {
    const canvas = this._canvases.get(id);
    if (canvas) {
      // Its pixels would stay until garbage is collected, which may take long.
      canvas.width = canvas.height = 0;
      this._canvases.delete(id);
    }
  }

  private _paint(order: IPaintOrder): void {
    const ctx = this._context(order, { alpha: false });
    if (ctx) {
      const { part, edge, stretch, rows } = order;
      const scale = new Scale(part.base, part.perPixel);
      paint(ctx, { ...part, scale }, edge, stretch, rows);
    }
  }

  private _write(order: IWriteOrder): void {
    const ctx = this._context(order, {});
    if (!ctx) {
      return;
    }
    const { font, text, quiet } = order.colours;
    if (order.isAll) {
      ctx.clearRect(0, 0, order.width, order.height);
    }
    ctx.textBaseline = 'middle';
    let style: IWords['style'] | null = null;
    for (const words of order.words) {
      const isValue = words.style === 'value';
      if (words.style !== style) {
        style = words.style;
        ctx.font = `${isValue ? 600 : 400} ${TEXT}px ${font}`;
        ctx.textAlign = isValue ? 'right' : 'left';
        ctx.fillStyle = isValue ? text : quiet;
      }
      const left = isValue ? WORDS_WIDTH - VALUE_WIDTH : 0;
      ctx.clearRect(left, words.y - LINE / 2, WORDS_WIDTH - left, LINE);
      ctx.fillText(words.text, isValue ? WORDS_WIDTH : 0, words.y);
    }
  }

  private _context(
    { id, width, height, ratio }: IPaintOrder | IWriteOrder,
    settings: CanvasRenderingContext2DSettings
  ): OffscreenCanvasRenderingContext2D | null {
    const canvas = this._canvases.get(id);
    if (!canvas) {
      return null;
    }
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const ctx = canvas.getContext('2d', settings);
    ctx?.setTransform(ratio, 0, 0, ratio, 0, 0);
    return ctx;
  }

  private readonly _canvases = new Map<number, OffscreenCanvas>();
}
