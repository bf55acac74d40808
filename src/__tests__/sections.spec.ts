import { divide } from '../panel/sections';

const SHARES = [0.5, 0.3, 0.2];

it.each([
  ['what is left goes to the last one', [200, 300, 0], [200, 400, 0]],
  ['a small one has what it needs', [100, 900, 0], [100, 500, 0]],
  [
    'so has one that needs less than what others leave',
    [90, 350, 900],
    [90, 306, 204]
  ],
  ['large ones share', [900, 900, 900], [300, 180, 120]],
  ['a closed one has nothing', [0, 0, 100], [0, 0, 600]],
  ['all are closed', [0, 0, 0], [0, 0, 0]]
])('%s', (_, needs, heights) => {
  expect(divide(600, needs, SHARES).map(Math.round)).toEqual(heights);
});
