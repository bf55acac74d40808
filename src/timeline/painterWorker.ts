import type { Order } from './orders';
import { Painter } from './painter';

const painter = new Painter();
self.onmessage = ({ data }: MessageEvent<readonly Order[]>) => {
  data.forEach(order => painter.obey(order));
  self.postMessage(null);
};
