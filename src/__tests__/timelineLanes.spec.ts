import { sayLanes } from '../timeline/lanes';

describe('the seconds of a profiled cell', () => {
  // A hundred collectives of 20 ms each, joined to one time of 10 s.
  const lanes = {
    compute: [[0, 1]],
    communication: [],
    waiting: [[1, 11]],
    seconds: { compute: 1, communication: 0, waiting: 2 }
  } as const;

  it('are those that were measured, not those of times that were joined', () => {
    expect(sayLanes([lanes], [0, 20])).toBe(
      'profiled: compute 1.00 s, communication 0.00 s, waiting for other ranks 2.00 s'
    );
  });

  it('are those of what is in sight', () => {
    expect(sayLanes([lanes, lanes], [6, 20])).toContain(
      'compute 0.00 s, communication 0.00 s, waiting for other ranks 2.00 s'
    );
  });
});
