import type { TimelineModel } from './model';
import type { Pointer } from './pointer';

/** By how much a key zooms, and the part of the width by which it moves. */
const [ZOOM, MOVE] = [2, 0.25];
/** Pixels by which it moves the cursor. */
const STEP = 10;

/**
 * Do what a key says, around a time; tell whether it is one of ours.
 */
export function obeyKey(
  event: KeyboardEvent,
  model: TimelineModel,
  pointer: Pointer,
  middle: number
): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  }
  switch (event.key) {
    case '+':
    case '=':
      model.zoomBy(ZOOM, middle);
      return true;
    case '-':
      model.zoomBy(1 / ZOOM, middle);
      return true;
    case 'ArrowLeft':
    case 'ArrowRight': {
      const way = event.key === 'ArrowLeft' ? -1 : 1;
      if (event.shiftKey) {
        // The first time it comes to the newest value.
        pointer.moveTo((pointer.x ?? Infinity) + way * STEP);
      } else {
        model.move(way * MOVE);
      }
      return true;
    }
    case '0':
    case 'Escape':
      pointer.moveTo(null);
      model.resetZoom();
      return true;
    default:
      return false;
  }
}
