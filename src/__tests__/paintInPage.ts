import { Painter } from '../timeline/painter';

/** A painter in the page's own thread, in place of the one in a worker. */
export const startPainter = () => new Painter();
