import { Signal } from '@lumino/signaling';

import { allGpus } from '../model/cards';
import type { IAttachment, IPool, IRank } from '../model/contract';
import type { PoolRequests } from '../model/pools';
import { UiState } from '../model/uiState';
import { StartModel } from '../model/startModel';
import type { ICurrentNotebook, IPoolsModel } from '../model/tokens';
import { makeTelemetry } from './gpuSamples';
import { FakeQueue } from './queueSamples';

export function makeRank(rank: number, changes: Partial<IRank> = {}): IRank {
  return {
    rank,
    device: 'cpu',
    gpu: null,
    pid: 1000 + rank,
    state: 'idle',
    since: 100,
    cell: null,
    cell_id: null,
    msg_id: null,
    exit: null,
    stderr: [],
    ...changes
  };
}

export function makeAttachment(
  changes: Partial<IAttachment> = {}
): IAttachment {
  return {
    as: 'kernel',
    pid: 900,
    kernel_id: 'k1',
    name: 'train.ipynb',
    mode: false,
    ...changes
  };
}

export function makePool(changes: Partial<IPool> = {}): IPool {
  return {
    id: 'p1',
    kernel_id: 'k1',
    name: 'train.ipynb',
    host: 'h',
    state: 'RUNNING',
    version: 1,
    reason: null,
    world_size: 2,
    backend: 'gloo',
    placement: 'cycle',
    notices: [],
    progress: { phase: 'starting ranks', ready: 0 },
    created: 50,
    started: 100,
    ended: null,
    orphaned: null,
    idle_since: null,
    attachments: [
      makeAttachment({ as: 'server', pid: 800, kernel_id: null, name: '' }),
      makeAttachment({ kernel_id: changes.kernel_id ?? 'k1' })
    ],
    generation: 1,
    ranks: [makeRank(0), makeRank(1)],
    ...changes
  };
}

/** The model, and the current notebook with it. */
export interface IFakeModel extends IPoolsModel, ICurrentNotebook {}

/** What differs from the sample; also what the server answers. */
export type Changes = Partial<Omit<IFakeModel, 'changed' | 'requests'>> &
  Partial<PoolRequests> & { changed?: object };

/** Have all who follow the model look at it again. */
export function emitChanged({ changed }: IFakeModel): void {
  changed.emit();
}

export function makeModel(changes: Changes = {}): IFakeModel {
  return {
    changed: new Signal<unknown, void>({}),
    connection: { state: 'live' },
    isKnown: true,
    pools: new Map(),
    gpus: null,
    nodes: {},
    allGpus: allGpus(changes.gpus ?? null, changes.nodes),
    gpusError: null,
    agentCalls: [],
    telemetry: makeTelemetry(),
    queue: new FakeQueue(),
    notebook: {
      path: 'train.ipynb',
      kernelId: 'k1',
      sessionId: 'sk1',
      isPython: true
    },
    pool: null,
    error: null,
    isPending: false,
    errorOf: jest.fn(() => null),
    hasRequest: jest.fn(() => false),
    interruptedAt: jest.fn(() => null),
    defaultRanks: 2,
    waitLimit: 10,
    reconnect: jest.fn(),
    dismissError: jest.fn(),
    forgetError: jest.fn(),
    setPreferredRanks: jest.fn(),
    setWaitLimit: jest.fn(),
    start: jest.fn(),
    stop: jest.fn(),
    interrupt: jest.fn(),
    setMode: jest.fn(),
    kill: jest.fn(),
    requests: {
      stack: jest.fn(),
      log: jest.fn(),
      variables: jest.fn(() => new Promise<never>(() => undefined)),
      checkVariables: jest.fn(() => new Promise<never>(() => undefined)),
      // The answer does not come while a test looks.
      startSchema: jest.fn(() => new Promise<never>(() => undefined)),
      ...changes
    },
    restart: jest.fn(),
    ...changes
  } as IFakeModel;
}

/** A start form that nobody has filled in. */
export function makeStart(model: IFakeModel): StartModel {
  return new StartModel(model, model, new UiState(null, ''));
}

/** Milliseconds: generous, as a machine may have other work. Jest's own limit is longer. */
const LIMIT = 60_000;

/** Wait until something is true. */
export async function until(isTrue: () => boolean): Promise<void> {
  const end = Date.now() + LIMIT;
  while (!isTrue()) {
    if (Date.now() > end) {
      throw new Error(`Still not true: ${isTrue.toString()}`);
    }
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}

export function dialog(): HTMLElement | null {
  return document.querySelector<HTMLElement>('.jp-Dialog');
}

/** Wait for a dialog that says this; it is in the page before its words are. */
export async function dialogSays(words: string): Promise<void> {
  await until(() => Boolean(dialog()?.textContent?.includes(words)));
}
