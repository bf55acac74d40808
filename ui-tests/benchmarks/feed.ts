import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

const HISTORY = 15 * 60;
/** Seconds from the start of one simulated cell to the next, and of the cell itself. */
const [CELL_EVERY, CELL] = [45, 35];
/** Seconds that are handed to the page at a time. */
const AT_ONCE = 300;
const GIGABYTE = 2 ** 30;

declare global {
  interface Window {
    /** The stream of this page, as the front end has it. */
    jupyterDistStream?: WebSocket;
  }
}

/** What a GPU does in a second: a training loop with noise, never twice the same. */
function load(gpu: number, time: number): number {
  const wave = 25 * Math.sin(time / 9 + gpu) + 12 * Math.sin(time * 1.7 + gpu);
  return Math.round(Math.max(0, Math.min(100, 60 + wave)));
}

function metrics(gpu: number, time: number): Record<string, number> {
  const utilization = load(gpu, time);
  return {
    utilization,
    memory_used: (20 + gpu) * GIGABYTE + utilization * 2 ** 20,
    power: 72 + 6 * utilization,
    power_limit: 700,
    temperature: 34 + Math.round(0.4 * utilization)
  };
}

/**
 * Second after second of 16 GPUs and the cells on their ranks, put into the page's real stream as if the server
 * had sent it.
 */
export class Feed {
  constructor(private readonly _page: IJupyterLabPageFixture) {}

  /** Before the page loads: catch the stream, and have the past come from here. */
  async install(): Promise<void> {
    await this._page.addInitScript(() => {
      const Native = window.WebSocket;
      window.WebSocket = class extends Native {
        constructor(url: string | URL, protocols?: string | string[]) {
          super(url, protocols);
          if (`${url}`.includes('jupyter-dist/stream')) {
            window.jupyterDistStream = this;
            // The server's own are of another time.
            this.addEventListener('message', event => {
              if (
                event.isTrusted &&
                /"type": ?"(sample|cells)"/.test(event.data)
              ) {
                event.stopImmediatePropagation();
              }
            });
          }
        }
      };
    });
    await this._page.route('**/jupyter-dist/gpus/history*', async route =>
      route.fulfill({ json: this._history() })
    );
    const answer = await this._page.request.get('jupyter-dist/gpus');
    const { gpus } = (await answer.json()) as { gpus: { uuid: string }[] };
    this._gpus = gpus.map(({ uuid }) => uuid);
  }

  /** Wait for the page, and for its stream. */
  async ready(): Promise<void> {
    await this._page
      .locator('#jupyterlab-splash')
      .waitFor({ state: 'detached' });
    await this._page.waitForFunction(
      () => window.jupyterDistStream?.readyState === WebSocket.OPEN
    );
  }

  /** Send so many seconds, one every `pause` milliseconds. */
  async send(seconds: number, pause: number): Promise<void> {
    for (let sent = 0; sent < seconds; sent += AT_ONCE) {
      await this._send(Math.min(AT_ONCE, seconds - sent), pause);
    }
  }

  private async _send(seconds: number, pause: number): Promise<void> {
    const messages: string[][] = [];
    for (let count = 0; count < seconds; count++) {
      this._time += 1;
      messages.push(this._second());
    }
    await this._page.evaluate(
      async ([messages, pause]) => {
        for (const second of messages) {
          for (const data of second) {
            window.jupyterDistStream?.dispatchEvent(
              new MessageEvent('message', { data })
            );
          }
          await new Promise(resolve => setTimeout(resolve, pause));
        }
      },
      [messages, pause] as const
    );
  }

  private _second(): string[] {
    const values: Record<string, number[]> = {};
    this._gpus.forEach((_, gpu) => {
      for (const [metric, value] of Object.entries(metrics(gpu, this._time))) {
        (values[metric] ??= []).push(value);
      }
    });
    const sample = { type: 'sample', time: this._time, values };
    const phase = this._time % CELL_EVERY;
    const isTurn = phase === 0 || phase === CELL;
    const news = isTurn
      ? [this._pool(phase === 0), this._cell(phase === 0)]
      : [];
    return [sample, ...news].map(one => JSON.stringify(one));
  }

  /** All ranks begin a cell, or are done with it. */
  private _cell(isBusy: boolean) {
    const start = isBusy ? this._time : this._time - CELL;
    const cell = Math.floor(start / CELL_EVERY) % 1000;
    const stretches = this._gpus.map((gpu, rank) => ({
      rank,
      gpu,
      start: start + rank / 100,
      end: isBusy ? null : this._time + rank / 100,
      lanes: null
    }));
    return {
      type: 'cells',
      complete: false,
      cells: [
        {
          id: `request-${start}`,
          pool: 'benchmark',
          kernel_id: 'none',
          name: 'train.ipynb',
          cell,
          cell_id: `cell-${cell}`,
          stretches
        }
      ]
    };
  }

  /** Who has the GPUs. */
  private _pool(isBusy: boolean) {
    this._version += 1;
    const cell = Math.floor(this._time / CELL_EVERY) % 1000;
    return {
      type: 'pool',
      pool: {
        id: 'benchmark',
        kernel_id: 'none',
        name: 'train.ipynb',
        host: 'here',
        state: 'RUNNING',
        version: this._version,
        reason: null,
        world_size: this._gpus.length,
        backend: 'nccl',
        placement: 'cycle',
        start_method: 'fork',
        notices: [],
        progress: { phase: '', ready: this._gpus.length },
        created: this._time - 1,
        started: this._time - 1,
        ended: null,
        orphaned: null,
        attachments: [],
        python: 'python',
        cwd: '.',
        folder: '.',
        generation: 1,
        ranks: this._gpus.map((uuid, rank) => ({
          rank,
          local_rank: rank,
          device: `cuda:${rank}`,
          gpu: { index: rank, label: `${rank}`, uuid, name: 'H100' },
          pid: 100 + rank,
          state: isBusy ? 'busy' : 'idle',
          since: this._time + rank / 100,
          cell,
          cell_id: `cell-${cell}`,
          msg_id: `request-${cell}`,
          exit: null,
          stderr: []
        }))
      }
    };
  }

  private _history() {
    const times = Array.from(
      { length: HISTORY },
      (_, index) => this._time - HISTORY + 1 + index
    );
    const gpus = this._gpus.map((uuid, gpu) => {
      const columns: Record<string, number[]> = {};
      for (const time of times) {
        for (const [metric, value] of Object.entries(metrics(gpu, time))) {
          (columns[metric] ??= []).push(value);
        }
      }
      return [uuid, columns];
    });
    return { step: 1, times, gpus: Object.fromEntries(gpus) };
  }

  private _gpus: string[] = [];
  private _time = Math.floor(Date.now() / 1000);
  private _version = 0;
}
