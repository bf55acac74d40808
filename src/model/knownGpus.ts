import { allGpus } from './cards';
import { ApiError } from './client';
import type { Client } from './client';
import type { IApiError } from './contract';
import type { IGpu, IInventory, NodeGpus } from './gpuContract';

/**
 * The GPUs of this machine and of the other nodes of its pools, as far as they are known.
 */
export class KnownGpus {
  constructor(private readonly _client: Client) {}

  /** Those of this machine; null until they are known. */
  inventory: IInventory | null = null;
  nodes: NodeGpus = {};
  /** Those of the inventory and of other nodes. */
  all: readonly IGpu[] = [];
  /** Why they could not be asked for. */
  error: IApiError | null = null;

  keep(inventory: IInventory, nodes: NodeGpus): void {
    this.inventory = inventory;
    this.nodes = nodes;
    this.all = allGpus(inventory, nodes);
    this.error = null;
  }

  async load(): Promise<void> {
    try {
      const inventory = await this._client.gpus();
      this.keep(inventory, this.nodes);
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      this.error = error;
    }
  }
}
