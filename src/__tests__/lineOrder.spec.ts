import { prioritiesAfterMove } from '../model/lineOrder';

/** The order of jobs after a move, by their places before it, and how many were changed. */
function move(
  priorities: number[],
  from: number,
  to: number
): [number[], number] {
  const changes = prioritiesAfterMove(priorities, from, to);
  const places = priorities.map((_, place) => place);
  const priority = (place: number) => changes.get(place) ?? priorities[place];
  // As the server sorts them: it is stable.
  places.sort((one, other) => priority(other) - priority(one));
  return [places, changes.size];
}

describe('prioritiesAfterMove', () => {
  it.each([
    [[0, 0, 0], 2, 0, [2, 0, 1], 1],
    [[0, 0, 0], 0, 2, [1, 2, 0], 1],
    [[0, 0, 0], 1, 0, [1, 0, 2], 1],
    [[0, 0, 0, 0, 0], 3, 1, [0, 3, 1, 2, 4], 2],
    [[5, 5, 0, 0], 3, 1, [0, 3, 1, 2], 2],
    [[5, 0], 1, 1, [0, 1], 0],
    [[7, 3, 3, -2], 0, 1, [1, 0, 2, 3], 1]
  ])('%j: from %i to %i', (priorities, from, to, order, changes) => {
    expect(move(priorities, from, to)).toEqual([order, changes]);
  });

  it('puts any job at any place', () => {
    const priorities = [9, 4, 4, 4, 1, 0, 0, 0, 0, -3];
    for (const from of priorities.keys()) {
      for (const to of priorities.keys()) {
        const order = [...priorities.keys()];
        order.splice(to, 0, ...order.splice(from, 1));
        expect(move(priorities, from, to)[0]).toEqual(order);
      }
    }
  });
});
