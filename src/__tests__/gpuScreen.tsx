import { act } from 'react';

import type { IGpusMessage, TelemetryMessage } from '../model/gpuContract';
import { Telemetry } from '../model/telemetry';
import { GpuList } from '../panel/gpus/gpuList';
import { FakeStream } from './gpuSamples';
import type { Changes } from './samples';
import { host, show } from './screen';

let stream: FakeStream;

/** Show the GPUs when the server has said this. */
export function showGpus(
  message: IGpusMessage,
  changes: Changes = {},
  Part: Parameters<typeof show>[1] = GpuList
): void {
  stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  stream.received.emit(message);
  const { inventory: gpus, nodes = {} } = message;
  show({ gpus, nodes, telemetry, ...changes }, Part);
}

/** Have the server say more. */
export function tell(...messages: TelemetryMessage[]): void {
  act(() => messages.forEach(message => stream.received.emit(message)));
}

/** The card of a GPU or a rank. */
export function card(name: string): Element {
  const found = host.querySelector(`li[aria-label="${name}"]`);
  if (!found) {
    throw new Error(`No card "${name}" in: ${host.textContent}`);
  }
  return found;
}

/** A bar, unless its value is not known. */
export function meter(name: string): Element | null {
  return host.querySelector(`[role=meter][aria-label="${name}"]`);
}
