import type { TimelineModel } from './model';

/** By how much a key zooms, and the part of the width by which it moves. */
const [ZOOM, MOVE] = [2, 0.25];

/**
 * Do what a key says, around a time; tell whether it is one of ours.
 */
export function obeyKey(
  event: KeyboardEvent,
  model: TimelineModel,
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
      model.move(-MOVE);
      return true;
    case 'ArrowRight':
      model.move(MOVE);
      return true;
    case '0':
    case 'Escape':
      model.resetZoom();
      return true;
    default:
      return false;
  }
}
