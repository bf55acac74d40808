/**
 * The new priorities with which a job comes to another place among waiting jobs of one user, by place
 * now: these start in the order of priority, then of age, in which they are given.
 *
 * Either those that it passes and follows are raised, or those that it passes and precedes lowered:
 * whichever changes fewer.
 */
export function prioritiesAfterMove(
  priorities: readonly number[],
  from: number,
  to: number
): Map<number, number> {
  const order = priorities.map((_, place) => place);
  order.splice(to, 0, ...order.splice(from, 1));
  const raised = new Map<number, number>();
  const lowered = new Map<number, number>();
  for (let index = order.length - 2; index >= 0; index--) {
    const [place, next] = [order[index], order[index + 1]];
    const least = (raised.get(next) ?? priorities[next]) + olderBy(place, next);
    if (priorities[place] < least) {
      raised.set(place, least);
    }
  }
  for (let index = 1; index < order.length; index++) {
    const [before, place] = [order[index - 1], order[index]];
    const most =
      (lowered.get(before) ?? priorities[before]) - olderBy(before, place);
    if (priorities[place] > most) {
      lowered.set(place, most);
    }
  }
  return raised.size <= lowered.size ? raised : lowered;
}

/** What the first one's priority must have more than the second's to come before it. */
function olderBy(first: number, second: number): number {
  return first < second ? 0 : 1;
}
