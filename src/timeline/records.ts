import { Signal, type ISignal } from '@lumino/signaling';

import type { Client } from '../model/client';
import type { IGpuHistory, Values } from '../model/gpuContract';
import type { IPoolsModel } from '../model/tokens';
import { Recording, stepOf } from './recording';

/** Where the past comes from. */
export type IPast = Pick<Client, 'gpuHistory'>;

/** What the GPUs did: the past as the server has it, and from there on what is told of them. */
export class Records {
  constructor(
    private readonly _pools: IPoolsModel,
    private readonly _past: IPast,
    span: number
  ) {
    this._recording = new Recording(span, []);
  }

  /** Emitted when the past has come, or has not. */
  get loaded(): ISignal<this, void> {
    return this._loaded;
  }

  /** Another object whenever the past has come. */
  get recording(): Recording {
    return this._recording;
  }

  /** Why there is no past, in a sentence. */
  get error(): string | null {
    return this._error;
  }

  /** Ask for so many seconds before a time, or before now. */
  async load(span: number, end: number | null): Promise<void> {
    const samples: [number, Map<string, Values>][] = [];
    this._late = samples;
    const since = end === null ? -span : end - span;
    let history: IGpuHistory | null = null;
    let error: string | null = null;
    try {
      history = await this._past.gpuHistory(since, stepOf(span));
    } catch (reason) {
      error = reason instanceof Error ? reason.message : String(reason);
    }
    // Meanwhile another range may have been asked for.
    if (this._late !== samples) {
      return;
    }
    this._late = null;
    this._error = error;
    const recording = new Recording(
      span,
      this._gpus.map(({ uuid }) => uuid)
    );
    if (history) {
      recording.addHistory(history);
    }
    for (const [time, values] of samples) {
      recording.add(time, uuid => values.get(uuid) ?? {});
    }
    this._recording = recording;
    this._loaded.emit();
  }

  /** Take in what is told of the GPUs now. */
  add(): void {
    const { telemetry } = this._pools;
    const { time } = telemetry;
    if (time === null || time === this._time) {
      return;
    }
    this._time = time;
    if (this._late) {
      const read = this._gpus.map(
        ({ uuid }) => [uuid, telemetry.gpu(uuid).values] as const
      );
      this._late.push([time, new Map(read)]);
    } else {
      this._recording.add(time, uuid => telemetry.gpu(uuid).values);
    }
  }

  dispose(): void {
    this._late = null;
    Signal.clearData(this);
  }

  private get _gpus() {
    return this._pools.allGpus;
  }

  private readonly _loaded = new Signal<this, void>(this);
  private _recording: Recording;
  private _error: string | null = null;
  /** The newest sample that was taken in. */
  private _time: number | null = null;
  /** Samples that come while the past is loaded; null otherwise. */
  private _late: [number, Map<string, Values>][] | null = null;
}
