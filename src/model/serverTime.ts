/** Seconds by which the server's clock is ahead of the browser's. */
let ahead = 0;

/** Seconds by which a clock was set back, at least; a time that is less too early came late. */
export const SET_BACK = 60;

/** Learn what time it is there, in Unix seconds. */
export function setServerTime(time: number): void {
  // A server that is older than this page does not say.
  if (Number.isFinite(time)) {
    ahead = time - Date.now() / 1000;
  }
}

/** Learn it again: of two messages, the one that was on its way for less time is right. */
export function correctServerTime(time: number): void {
  const early = serverTime() - time;
  if (early < 0 || early > SET_BACK) {
    setServerTime(time);
  }
}

/**
 * Unix seconds by the server's clock, which all times in its messages are by: a browser on another
 * machine may be minutes off.
 */
export function serverTime(): number {
  return Date.now() / 1000 + ahead;
}
