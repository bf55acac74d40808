import type { IStretch } from './bands';

/** Whether two stretches of a pool cannot both be true: a rank runs one cell at a time. */
export function exclude(a: IStretch, b: IStretch): boolean {
  return (
    a.rank === b.rank &&
    (a.start === b.start ||
      (a.start < (b.end ?? Infinity) && b.start < (a.end ?? Infinity)))
  );
}

/**
 * What of a pool's stretches, as the server tells them, is not known, or not so exactly.
 *
 * Those that last, there or here, are left to the stream of states, which tells of them too.
 */
export function newsOf(
  known: readonly IStretch[],
  told: readonly IStretch[]
): IStretch[] {
  const keyOf = ({ rank, start, end }: IStretch) => `${rank} ${start} ${end}`;
  const keys = new Set(known.map(keyOf));
  const running = known.filter(({ end }) => end === null);
  return told.filter(
    stretch =>
      stretch.end !== null &&
      !keys.has(keyOf(stretch)) &&
      !running.some(one => exclude(one, stretch))
  );
}
