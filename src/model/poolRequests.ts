import { ApiError } from './client';
import type { IApiError, IPool, IStartChoice } from './contract';
import type { INotebookKernels } from './notebook';

/**
 * What was asked about pools: what has no answer yet, and what went wrong.
 *
 * That an answer is awaited shows wherever the pool is that it is for; an error shows beside the notebook that asked.
 */
export class PoolRequests {
  constructor(
    private readonly _kernels: INotebookKernels,
    private readonly _keep: (pool: IPool) => void,
    private readonly _changed: () => void
  ) {}

  errorOf(kernelId: string): IApiError | null {
    return this._errors.get(kernelId) ?? null;
  }

  forgetError(kernelId: string): void {
    this._errors.delete(kernelId);
    this._changed();
  }

  /** A start that was refused does not matter any more where there is a pool. */
  forgetRefusedStarts(hasPool: (kernelId: string) => boolean): void {
    for (const [kernelId, { choice }] of this._errors) {
      if (choice && hasPool(kernelId)) {
        this._errors.delete(kernelId);
      }
    }
  }

  isPending(id: string): boolean {
    return this._pending.has(id);
  }

  /** Keep the pool that is answered; tell whether one was. */
  async send(
    target: string,
    ask: () => Promise<IPool>,
    asking = this._kernels.current ?? '',
    choice?: IStartChoice
  ): Promise<boolean> {
    this._pending.add(target);
    this._errors.delete(asking);
    this._changed();
    try {
      this._keep(await ask());
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      error.choice = choice;
      this._errors.set(asking, error);
      return false;
    } finally {
      this._pending.delete(target);
      this._changed();
    }
  }

  /** Run a magic in a notebook's kernel; the message is for when that fails. */
  async runMagic(
    kernelId: string,
    line: string,
    message: string
  ): Promise<void> {
    const hint = await this._kernels.runMagic(kernelId, line);
    if (hint !== null) {
      this._errors.set(kernelId, { code: 'magic_failed', message, hint });
      this._changed();
    }
  }

  private readonly _errors = new Map<string, IApiError>();
  /** Ids of pools, and of kernels that are to get one. */
  private readonly _pending = new Set<string>();
}
