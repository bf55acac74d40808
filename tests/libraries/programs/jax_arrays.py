"""JAX: an array over the devices of all ranks, summed by each, in a job of JAX's own."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if not jax.distributed.is_initialized():
        # It looks for the coordinator in JAX_COORDINATOR_ADDRESS.
        jax.distributed.initialize(num_processes=size, process_id=rank)
    assert jax.process_count() == size and jax.process_index() == rank
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    x = jax.make_array_from_process_local_data(
        NamedSharding(mesh, PartitionSpec("data")), np.full((2, 3), rank + 1.0)
    )
    assert x.shape == (2 * size, 3)
    total = float(jax.jit(jnp.sum)(x))
    assert total == 6 * sum(range(1, size + 1))
    ranks = multihost_utils.process_allgather(np.array([rank]))
    print(f"sum {total}, of ranks {ranks.ravel().tolist()}")


if __name__ == "__main__":
    main()
