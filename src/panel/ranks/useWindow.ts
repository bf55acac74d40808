import { useLayoutEffect, useState } from 'react';
import type { RefObject } from 'react';

/** What of a grid can be seen. */
export interface IWindow {
  columns: number;
  /** The rows to draw: the first, and the one after the last. */
  first: number;
  end: number;
}

/** Pixels, as in the style sheet. */
const CELL = { width: 38, height: 26, gap: 4 };
/** Rows beyond the edge, so that scrolling does not show a gap. */
const SPARE = 2;

/**
 * How many columns a grid has room for, and which of its rows are in sight in `scroller`.
 */
export function useWindow(
  list: RefObject<HTMLElement>,
  scroller: string
): IWindow {
  const [shown, setShown] = useState<IWindow>({
    columns: 8,
    first: 0,
    end: Infinity
  });
  useLayoutEffect(() => {
    const node = list.current;
    const frame = node?.closest<HTMLElement>(scroller);
    if (!node || !frame) {
      return;
    }
    const look = () => {
      const next = windowOf(
        node.getBoundingClientRect(),
        frame.getBoundingClientRect()
      );
      setShown(last =>
        JSON.stringify(last) === JSON.stringify(next) ? last : next
      );
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(node);
    observer.observe(frame);
    frame.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      frame.removeEventListener('scroll', look);
    };
  }, [list, scroller]);
  return shown;
}

/** Where nothing is laid out, everything is in sight. */
export function windowOf(
  list: Pick<DOMRect, 'top' | 'width'>,
  frame: Pick<DOMRect, 'top' | 'height'>
): IWindow {
  const { width, height, gap } = CELL;
  const columns = Math.max(1, Math.floor((list.width + gap) / (width + gap)));
  if (frame.height === 0) {
    return { columns, first: 0, end: Infinity };
  }
  const above = (frame.top - list.top) / (height + gap);
  const inSight = frame.height / (height + gap);
  return {
    columns,
    first: Math.max(0, Math.floor(above) - SPARE),
    end: Math.max(0, Math.ceil(above + inSight) + SPARE)
  };
}
