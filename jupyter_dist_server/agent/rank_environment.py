"""The environment of a rank: torchrun's variables, Slurm's, and the CUDA mask.

See https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def rank_environment(
    rank: int, world_size: int, pool_id: str, ports: tuple[int, int], mask: str | None
) -> dict[str, str]:
    """Return the variables that torchrun would set for this rank on one machine, and its mask.

    Parameters
    ----------
    rank, world_size, pool_id
        Who it is.
    ports : tuple of int
        ``MASTER_PORT``, for programs that the rank starts, and the port of JAX's coordinator; the
        pool's group uses neither.
    mask : str or None
        What CUDA may see.
    """
    masks = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    return (
        _slurm_variables(os.environ, rank, world_size)
        | masks
        | {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "LOCAL_WORLD_SIZE": str(world_size),
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_NAME": "default",
            "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": str(world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(ports[0]),
            "JAX_COORDINATOR_ADDRESS": os.environ.get(
                "JAX_COORDINATOR_ADDRESS", f"127.0.0.1:{ports[1]}"
            ),
            "TORCHELASTIC_RUN_ID": pool_id,
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            # Nobody listens there: a program that a rank starts has a rendezvous of its own, which
            # its rank 0 serves. The store of the pool's group would remember an earlier program.
            "TORCHELASTIC_USE_AGENT_STORE": "False",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        }
    )


def _slurm_variables(environment: Mapping[str, str], rank: int, world_size: int) -> dict[str, str]:
    """Return Slurm's variables as they would be had Slurm started the ranks.

    Otherwise every rank had those of the server, and what looks at them first (Lightning, say)
    would take each for rank 0.
    """
    if "SLURM_JOB_ID" not in environment:
        return {}
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NODEID": "0",
        "SLURM_NTASKS": str(world_size),
        "SLURM_NPROCS": str(world_size),
        "SLURM_NTASKS_PER_NODE": str(world_size),
        "SLURM_TASKS_PER_NODE": str(world_size),
        "SLURM_NNODES": "1",
        "SLURM_JOB_NUM_NODES": "1",
    }
