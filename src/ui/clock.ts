import { useSyncExternalStore } from 'react';

import { serverTime } from '../model/serverTime';

/** The one timer of the panel: it runs only while it is on and somebody shows a time. */
export class Clock {
  /** Unix seconds, by the server's clock. */
  readonly now = (): number => this._now;

  readonly subscribe = (listener: () => void): (() => void) => {
    this._listeners.add(listener);
    this._arrange();
    return () => {
      this._listeners.delete(listener);
      this._arrange();
    };
  };

  get isOn(): boolean {
    return this._isOn;
  }

  set isOn(isOn: boolean) {
    this._isOn = isOn;
    this._arrange();
  }

  private _arrange(): void {
    const isNeeded = this._isOn && this._listeners.size > 0;
    if (isNeeded && this._timer === undefined) {
      this._timer = setInterval(() => this._tick(), 1000);
      this._tick();
    } else if (!isNeeded && this._timer !== undefined) {
      clearInterval(this._timer);
      this._timer = undefined;
    }
  }

  private _tick(): void {
    if (document.hidden) {
      return;
    }
    this._now = seconds();
    this._listeners.forEach(listener => listener());
  }

  private readonly _listeners = new Set<() => void>();
  private _now = seconds();
  private _isOn = false;
  private _timer: ReturnType<typeof setInterval> | undefined;
}

/** The time, again each second while the component is mounted. */
export function useNow(clock: Clock): number {
  return useSyncExternalStore(clock.subscribe, clock.now);
}

function seconds(): number {
  return Math.floor(serverTime());
}
