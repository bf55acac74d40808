import type { Page, WebSocketRoute } from '@playwright/test';

/** What a rank is said to be, beside what all have in common. */
export interface ISaid {
  state?: 'idle' | 'busy' | 'dead';
  cell?: number | null;
  since?: number;
  exit?: string;
  stderr?: string[];
  /** The collective that it waits in, the line, and for how many seconds. */
  waits?: [call: string, line: number, seconds: number];
}

/**
 * A server that says of the current notebook's pool what a test wants: more ranks than this machine could
 * run, in any state. Everything else passes through to the real server.
 */
export class PretendedPool {
  private constructor(private readonly _page: Page) {}

  /** To be called before the page is loaded. */
  static async follow(page: Page): Promise<PretendedPool> {
    const pretended = new PretendedPool(page);
    page.on('domcontentloaded', () => (pretended._said = []));
    await page.routeWebSocket(/jupyter-dist\/stream/, socket => {
      pretended._socket = socket;
      const server = socket.connectToServer();
      socket.onMessage(message => {
        server.send(message);
        // A page that looks at other things has forgotten what it was told of the ranks.
        pretended._said.forEach(one => pretended._send(one));
      });
      server.onMessage(message => {
        const said = JSON.parse(String(message));
        if (said.type === 'gpus') {
          pretended._gpus = said;
        }
        // What the real ranks use would say that these use nothing.
        if (said.type !== 'usage') {
          socket.send(message);
        }
        // A page that has connected anew knows the real server's pools only.
        if (said.type === 'pools') {
          pretended._said.forEach(one => pretended._send(one));
        }
      });
    });
    return pretended;
  }

  /** There are no new readings of the GPUs, for this reason. */
  sayStale(trouble: string): void {
    const stale_since = Math.floor(Date.now() / 1000) - 60;
    this._send({ ...this._gpus, stale_since, trouble });
  }

  /** The server cannot be reached any more. */
  async loseConnection(): Promise<void> {
    await this._page.route(/jupyter-dist\/status/, route => route.abort());
    await this._socket?.close();
  }

  say(kernelId: string, ranks: ISaid[], changes: object = {}): void {
    const now = Math.floor(Date.now() / 1000);
    this._version += 1;
    const pool = {
      type: 'pool',
      pool: {
        id: 'pretended',
        kernel_id: kernelId,
        name: 'many.ipynb',
        host: 'here',
        state: 'RUNNING',
        version: this._version,
        reason: null,
        world_size: ranks.length,
        backend: 'cpu:gloo,cuda:nccl',
        placement: 'cycle',
        start_method: 'fork',
        notices: [],
        progress: { phase: '', ready: ranks.length },
        created: now - 725,
        started: now - 725,
        ended: null,
        orphaned: null,
        idle_since: null,
        attachments: [],
        python: 'python',
        cwd: '.',
        folder: '.',
        generation: 1,
        ranks: ranks.map((said, rank) => ({
          rank,
          local_rank: rank,
          device: `cuda:${rank % 8}`,
          gpu: {
            index: rank % 8,
            label: `${rank % 8}`,
            uuid: this._uuid(rank),
            name: 'NVIDIA H100 80GB HBM3'
          },
          pid: 10_000 + rank,
          state: said.state ?? 'idle',
          since: said.since ?? now - 41,
          cell: said.cell ?? null,
          exit: said.exit ?? null,
          stderr: said.stderr ?? []
        })),
        ...changes
      }
    };
    const usage = {
      type: 'usage',
      pools: {
        pretended: ranks.map(({ state, waits }, rank) =>
          state === 'dead'
            ? null
            : {
                rank,
                pid: 10_000 + rank,
                host_pid: 10_000 + rank,
                cpu: 50,
                memory: 2 ** 30,
                gpu_uuid: this._uuid(rank),
                allocated: 31.2 * 2 ** 30,
                reserved: 33 * 2 ** 30,
                call: waits?.[0] ?? null,
                calls: waits ? 412 : null,
                line: waits?.[1] ?? null,
                waiting_since: waits ? now - waits[2] : null
              }
        )
      }
    };
    this._said = [pool, usage];
    this._said.forEach(one => this._send(one));
  }

  /** Of a GPU of the real server, once it has told of them. */
  private _uuid(rank: number): string {
    const gpus = this._gpus?.inventory.gpus;
    return gpus?.[rank % gpus.length]?.uuid ?? `GPU-${rank % 8}`;
  }

  private _send(message: object): void {
    this._socket?.send(JSON.stringify(message));
  }

  private _socket: WebSocketRoute | null = null;
  private _gpus: { inventory: { gpus: { uuid: string }[] } } | null = null;
  /** What a test has said last. */
  private _said: object[] = [];
  private _version = 0;
}
