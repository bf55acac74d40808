import { Signal } from '@lumino/signaling';

import type { ICell } from '../model/cellContract';
import type { StreamMessage } from '../model/contract';
import type {
  IGpu,
  IGpusMessage,
  IInventory,
  IProcess,
  IUsage,
  IVerdict,
  Topic
} from '../model/gpuContract';
import { Telemetry } from '../model/telemetry';
import type { ISource } from '../model/telemetry';

/** The first GPU, as a rank refers to it. */
export const GPU_0 = { index: 0, label: '0', uuid: 'GPU-0', name: 'H100' };

export function makeGpu(index: number, changes: Partial<IGpu> = {}): IGpu {
  return {
    index,
    uuid: `GPU-${index}`,
    name: 'NVIDIA H100 80GB',
    memory_total: 80 * 2 ** 30,
    pci_bus_id: `0000:0${index}:00.0`,
    mig: null,
    parent: null,
    ...changes
  };
}

export function makeInventory(changes: Partial<IInventory> = {}): IInventory {
  return {
    gpus: [makeGpu(0), makeGpu(1)],
    driver: '570.1',
    reason: null,
    problems: [],
    ...changes
  };
}

export function makeGpusMessage(
  changes: Partial<IGpusMessage> = {}
): IGpusMessage {
  return {
    type: 'gpus',
    inventory: makeInventory(),
    stale_since: null,
    trouble: null,
    errors: {},
    leases: {},
    ...changes
  };
}

export function makeProcess(changes: Partial<IProcess> = {}): IProcess {
  return {
    pid: 812,
    user: 'bob',
    command: 'python',
    memory: 31 * 2 ** 30,
    sm: null,
    who: { kind: 'other' },
    ...changes
  };
}

export function makeUsage(rank: number, changes: Partial<IUsage> = {}): IUsage {
  return {
    rank,
    pid: 1000 + rank,
    host_pid: 1000 + rank,
    cpu: 50,
    memory: 2 ** 30,
    allocated: null,
    reserved: null,
    call: null,
    calls: null,
    line: null,
    waiting_since: null,
    ...changes
  };
}

/** What a server says of ranks whose processes are stopped. */
export function makeStopped(...ranks: number[]): IVerdict {
  return {
    ...{ kind: 'stopped', sentence: '', hint: '', ranks, stuck: true },
    ...{ op: null, since: null },
    remedies: [{ label: '', magic: '', restarts: ranks }]
  };
}

/** A cell of the pool `p1`; of each rank, when it began and ended. */
export function makeCell(
  id: string,
  spans: [number, number | null][],
  changes: Partial<ICell> = {}
): ICell {
  return {
    id,
    pool: 'p1',
    kernel_id: 'k1',
    name: 'train.ipynb',
    cell: null,
    cell_id: null,
    stretches: spans.map(([start, end], rank) => ({
      rank,
      gpu: `GPU-${rank}`,
      start,
      end,
      lanes: null
    })),
    ...changes
  };
}

/** A stream without a server. */
export class FakeStream implements ISource {
  readonly received = new Signal<this, StreamMessage>(this);
  /** What was asked for, each time. */
  readonly watched: (readonly Topic[])[] = [];

  watch(topics: readonly Topic[]): void {
    this.watched.push(topics);
  }
}

/** Telemetry that has been told this. */
export function makeTelemetry(...messages: StreamMessage[]): Telemetry {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  messages.forEach(message => stream.received.emit(message));
  return telemetry;
}
