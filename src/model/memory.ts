import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

type Value = ReadonlyPartialJSONValue;

/**
 * What the user chose, by name; it outlives a reload where JupyterLab keeps its layout too.
 *
 * The same object is answered for a name until another one is set.
 */
export class Memory {
  constructor(
    private readonly _db: IStateDB | null,
    private readonly _key: string,
    /** The oldest are forgotten. */
    private readonly _most = 50
  ) {
    this.ready = this._load();
  }

  /** What was kept is there. */
  readonly ready: Promise<void>;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get(name: string): Value | undefined {
    return this._values.get(name);
  }

  set(name: string, value: Value): void {
    this._values.delete(name);
    this._values.set(name, value);
    for (const oldest of this._values.keys()) {
      if (this._values.size <= this._most) {
        break;
      }
      this._values.delete(oldest);
    }
    this._keep();
  }

  rename(from: string, to: string): void {
    const value = this._values.get(from);
    if (value !== undefined) {
      this._values.delete(from);
      this.set(to, value);
    }
  }

  private async _load(): Promise<void> {
    const kept = await this._db?.fetch(this._key);
    if (Array.isArray(kept)) {
      // What was chosen meanwhile is newer.
      const entries = kept as [string, Value][];
      this._values = new Map([...entries, ...this._values]);
      this._changed.emit();
    }
  }

  private _keep(): void {
    this._changed.emit();
    void this._save();
  }

  private async _save(): Promise<void> {
    // What was kept before would be lost if it were not there yet.
    await this.ready;
    await this._db?.save(this._key, [...this._values] as Value);
  }

  private readonly _changed = new Signal<this, void>(this);
  private _values = new Map<string, Value>();
}
