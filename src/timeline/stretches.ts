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
  const byStart = new Map<number, IStretch[]>();
  for (const one of known) {
    byStart.set(one.start, [...(byStart.get(one.start) ?? []), one]);
  }
  const isKnown = ({ rank, start, end }: IStretch) =>
    byStart.get(start)?.some(one => one.rank === rank && one.end === end);
  const running = known.filter(({ end }) => end === null);
  return told.filter(
    stretch =>
      stretch.end !== null &&
      !isKnown(stretch) &&
      !running.some(one => exclude(one, stretch))
  );
}
