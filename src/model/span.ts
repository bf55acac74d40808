import type { IPool } from './contract';

/** Seconds that small curves may reach back, the longest last. */
const SPANS = [120, 300, 900] as const;
/** The longest of them. */
export const SPAN = 900;

/** When a pool began to live; `undefined` if it is not alive. */
export function bornAt(pool: IPool | null): number | null | undefined {
  return pool && !pool.ended ? pool.started : undefined;
}

/** How far back small curves reach: over the life of the notebook's pool, or as far as is known. */
export function spanOf(born: number | null | undefined, now: number): number {
  const life = born === undefined ? SPAN : now - (born ?? now);
  return SPANS.find(span => life <= span) ?? SPAN;
}

/** The end of a curve that reaches back over `SPAN`. */
export function lastPart<T>(curve: readonly T[], span: number): readonly T[] {
  return curve.slice(-Math.ceil((curve.length * span) / SPAN));
}
