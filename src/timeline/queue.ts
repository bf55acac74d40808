import type { Order } from './orders';

/**
 * Add an order to those that wait; what it draws over need not be drawn.
 *
 * So a painter that is slower than the screen is behind by one picture, not by many.
 */
export function queue(orders: readonly Order[], order: Order): Order[] {
  const isOver =
    order.type === 'forget' ||
    (order.type === 'paint' && order.stretch[0] === order.edge) ||
    (order.type === 'write' && order.isAll);
  return [
    ...orders.filter(
      ({ type, id }) => !isOver || type === 'take' || id !== order.id
    ),
    order
  ];
}
