import { shareHeight } from '../panel/shareHeight';

const SHARES = [0.65, 0.25, 0.1];

it.each<[string, (number | null)[], number[]]>([
  ['each what it needs, the rest to the last', [300, 200, 50], [300, 200, 500]],
  ['the rest to the last that is open', [300, 200, null], [300, 700, 0]],
  ['a long list what the others leave', [300, 3000, null], [300, 700, 0]],
  ['the pool no more than its share', [900, 3000, null], [722, 278, 0]],
  ['all their shares when all need more', [900, 900, 900], [650, 250, 100]],
  ['nothing to closed ones', [null, null, null], [0, 0, 0]],
  ['everything to the only one', [null, 100, null], [0, 1000, 0]]
])('gives %s', (_, wanted, heights) => {
  expect(shareHeight(wanted, SHARES, 1000).map(Math.round)).toEqual(heights);
});
