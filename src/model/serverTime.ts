/** Seconds by which the server's clock is ahead of the browser's. */
let ahead = 0;

/** Learn what time it is there, in Unix seconds. */
export function setServerTime(time: number): void {
  // A server that is older than this page does not say.
  if (Number.isFinite(time)) {
    ahead = time - Date.now() / 1000;
  }
}

/**
 * Unix seconds by the server's clock, which all times in its messages are by: a browser on another
 * machine may be minutes off.
 */
export function serverTime(): number {
  return Date.now() / 1000 + ahead;
}
