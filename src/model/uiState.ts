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
export class UiState {
  constructor(
    private readonly _db: IStateDB | null,
    private readonly _key: string,
    { most = 50, toKeep = value => value }: UiState.IOptions = {}
  ) {
    this._most = most;
    this._toKeep = toKeep;
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

  /** Forget what was chosen under a path, and under those below it. */
  forget(path: string): void {
    const names = this._below(path);
    names.forEach(name => this._values.delete(name));
    if (names.length) {
      this._keep();
    }
  }

  /** Paths below it go with it; what was chosen under the new one before is nothing to them. */
  rename(from: string, to: string): void {
    const moved = this._below(from).map(
      name => [to + name.slice(from.length), this._values.get(name)] as const
    );
    if (moved.length) {
      this.forget(from);
      this.forget(to);
      moved.forEach(([name, value]) => this.set(name, value as Value));
    }
  }

  private _below(path: string): string[] {
    return [...this._values.keys()].filter(
      name => name === path || name.startsWith(`${path}/`)
    );
  }

  private async _load(): Promise<void> {
    const kept = await this._db?.fetch(this._key);
    if (Array.isArray(kept)) {
      // What was chosen meanwhile is newer.
      this._saved = JSON.stringify(kept);
      const entries = (kept as [string, Value][]).map(
        ([name, value]) => [name, this._toKeep(value)] as const
      );
      this._values = new Map([...entries, ...this._values]);
      this._changed.emit();
      // An earlier version may have kept more.
      await this._write();
    }
  }

  private _keep(): void {
    this._changed.emit();
    void this._save();
  }

  private async _save(): Promise<void> {
    // What was kept before would be lost if it were not there yet.
    await this.ready;
    await this._write();
  }

  private async _write(): Promise<void> {
    const entries = [...this._values].map(([name, value]) => [
      name,
      this._toKeep(value)
    ]);
    const saved = JSON.stringify(entries);
    if (saved !== this._saved) {
      this._saved = saved;
      await this._db?.save(this._key, entries as Value);
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _most: number;
  private readonly _toKeep: (value: Value) => Value;
  private _values = new Map<string, Value>();
  /** What is in the state, as text. */
  private _saved = '';
}

export namespace UiState {
  export interface IOptions {
    /** The oldest are forgotten. */
    most?: number;
    /** What of a value may outlive the page. */
    toKeep?: (value: Value) => Value;
  }
}
