import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

type Value = ReadonlyPartialJSONValue;

const MOST = 50;

/** What the user chose, by name. It is kept where JupyterLab keeps its layout; the oldest is forgotten. */
export class UiState {
  constructor(
    private readonly _db: IStateDB | null,
    private readonly _key: string,
    /** The part of a value that may be kept. */
    private readonly _toKeep = (value: Value) => value
  ) {
    this.ready = this._load();
  }

  /** Resolves when what was kept has been read. */
  readonly ready: Promise<void>;
  readonly changed = new Signal<unknown, void>(this);

  /** The same object until another one is set. */
  get(name: string): Value | undefined {
    return this._values.get(name);
  }

  set(name: string, value: Value): void {
    this._values.delete(name);
    this._values.set(name, value);
    this._values = new Map([...this._values].slice(-MOST));
    void this._keep();
  }

  /** Forget what was chosen under a path, and under those below it. */
  forget(path: string): void {
    const names = this._below(path);
    names.forEach(name => this._values.delete(name));
    if (names.length) {
      void this._keep();
    }
  }

  /** Move what was chosen under a path, and below it, to another path. */
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
      const entries = kept as [string, Value][];
      this._values = new Map([...entries, ...this._values]);
      this.changed.emit();
    }
  }

  private async _keep(): Promise<void> {
    this.changed.emit();
    // Otherwise what was kept before would be lost.
    await this.ready;
    const entries = [...this._values].map(
      ([name, value]) => [name, this._toKeep(value)] as const
    );
    await this._db?.save(this._key, entries);
  }

  private _values = new Map<string, Value>();
}
