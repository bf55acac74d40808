import type { CDPSession, Page } from '@playwright/test';

/** Milliseconds of an update, and of it those in JavaScript. */
export interface ICost {
  task: number;
  script: number;
}

/**
 * What the browser itself says of a page's main thread and memory.
 *
 * Times are CPU time of the thread, so that it counts little what else the machine does.
 */
export class Meter {
  private constructor(private readonly _session: CDPSession) {}

  static async on(page: Page): Promise<Meter> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.setTimeDomain', {
      timeDomain: 'threadTicks'
    });
    await session.send('Performance.enable');
    return new Meter(session);
  }

  /** What each of so many updates costs: all tasks of the main thread meanwhile. */
  async cost(updates: number, run: () => Promise<void>): Promise<ICost> {
    // What others have left would be collected now.
    await this._collectGarbage();
    const before = await this._read();
    await run();
    const after = await this._read();
    const each = (name: string) =>
      (1000 * (after[name] - before[name])) / updates;
    return { task: each('TaskDuration'), script: each('ScriptDuration') };
  }

  /** Bytes in use, without what nobody holds any more. */
  async heap(): Promise<number> {
    await this._collectGarbage();
    return (await this._read()).JSHeapUsedSize;
  }

  private async _collectGarbage(): Promise<void> {
    for (let count = 0; count < 3; count++) {
      await this._session.send('HeapProfiler.collectGarbage');
    }
  }

  private async _read(): Promise<Record<string, number>> {
    const { metrics } = await this._session.send('Performance.getMetrics');
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  }
}

/** The median. */
export function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

export function median(costs: readonly ICost[]): ICost {
  return {
    task: middle(costs.map(({ task }) => task)),
    script: middle(costs.map(({ script }) => script))
  };
}
