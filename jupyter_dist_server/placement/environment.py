"""The environment of a rank: torchrun's variables and the CUDA mask.

See https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .slurm import rank_variables

if TYPE_CHECKING:
    from .assignment import Placement

_NOT_FOR_RANKS = (
    "JPY_PARENT_PID",  # ipykernel would end the rank as soon as its parent is not this process
    "JPY_INTERRUPT_EVENT",
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def agent_environment(
    base: dict[str, str], extra: dict[str, str], placement: Placement
) -> dict[str, str]:
    """Return the environment that the agent starts with and all its ranks share.

    Parameters
    ----------
    base : dict
        The notebook kernel's environment.
    extra : dict
        What the user added.
    placement : Placement
        Decides what CUDA may see.
    """
    env = {name: value for name, value in base.items() if name not in _NOT_FOR_RANKS}
    env |= extra
    # OpenBLAS would start threads as numpy is imported, and a process with threads must not fork.
    # It is also torchrun's default for ranks; `thread_limits` gives them what the user asked for.
    env |= dict.fromkeys(_THREADS, "1")
    # The agent must not open CUDA: a forked child could not use it any more.
    env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # gloo looks the host name up otherwise, and may listen on an outer interface.
    # So may NCCL, which takes the loopback only if it is named.
    for library in ("GLOO", "NCCL"):
        env.setdefault(f"{library}_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    if placement.used:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        masks = (placement.mask(rank) for rank in range(len(placement.gpus)))
        env["CUDA_VISIBLE_DEVICES"] = next(filter(None, masks))  # the agent itself uses none
    return env


def thread_limits(base: dict[str, str], extra: dict[str, str]) -> dict[str, str]:
    """Return the limits that the user set; a rank gets them back after the fork.

    torch obeys them from then on. OpenBLAS has read 1 by then, unless the ranks are spawned.
    """
    given = base | extra
    return {name: given[name] for name in _THREADS if name in given}


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
        rank_variables(os.environ, rank, world_size)
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
