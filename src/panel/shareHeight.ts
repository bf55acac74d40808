/**
 * Divides the panel's height among its open sections.
 *
 * A section that needs less than its share leaves the rest to the others; what nobody needs goes to the
 * last one. `wanted` is null for a section that is closed.
 */
export function shareHeight(
  wanted: readonly (number | null)[],
  shares: readonly number[],
  space: number
): number[] {
  const heights = wanted.map(() => 0);
  let open = [...wanted.keys()].filter(index => wanted[index] !== null);
  const last = open.at(-1);
  let left = space;
  while (open.length > 0) {
    const total = open.reduce((sum, index) => sum + shares[index], 0);
    const part = (index: number) => (left * shares[index]) / total;
    const modest = open.filter(index => (wanted[index] ?? 0) <= part(index));
    if (modest.length === 0) {
      open.forEach(index => (heights[index] = part(index)));
      return heights;
    }
    modest.forEach(index => (heights[index] = wanted[index] ?? 0));
    left -= modest.reduce((sum, index) => sum + heights[index], 0);
    open = open.filter(index => !modest.includes(index));
  }
  if (last !== undefined) {
    heights[last] += left;
  }
  return heights;
}
