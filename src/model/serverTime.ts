/** Seconds by which the server's clock is ahead of the browser's. */
let ahead = 0;
/** The newest time that the server has told. */
let told = -Infinity;

/** A time that is so many seconds earlier than the last one is of a clock that was set back. */
export const SET_BACK = 60;

/** Learn what time it is there, in Unix seconds. */
export function setServerTime(time: number): void {
  // A server that is older than this page does not say.
  if (Number.isFinite(time)) {
    ahead = time - Date.now() / 1000;
    told = time;
  }
}

/** Learn it again; a message that came late says nothing new, unless the clock was set back. */
export function correctServerTime(time: number): void {
  if (time < told || time > serverTime()) {
    setServerTime(time);
  }
  told = time;
}

/**
 * Unix seconds by the server's clock, which all times in its messages are by: a browser on another
 * machine may be minutes off.
 */
export function serverTime(): number {
  return Date.now() / 1000 + ahead;
}
