"""The environment of a rank: torchrun's variables, Slurm's, and the CUDA mask.

See https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import psutil

from ...common.inside_slurm import is_inside
from ...common.protocol.node_addresses import PoolNode

_LOOPBACK = "lo"
_NCCL = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "1",
}
"""NCCL's watchdog must end no rank and abort nothing.

Otherwise, 10 minutes in a debugger on one rank would cost the others, and a CUDA error the
variables on the CPU. Nor may it wait for dumps: once the store is gone it complains each second, in
a cell's output, and after a program's time limit it would wait a minute for them, and the next
group for it. Variables that the user has set count more.

https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
"""


def rank_environment(
    rank: int,
    world_size: int,
    pool_id: str,
    ports: tuple[int, int],
    mask: str | None,
    nodes: Sequence[PoolNode] = (),
) -> dict[str, str]:
    """Return the variables that torchrun would set for this rank, and its CUDA mask.

    `ports` are ``MASTER_PORT``, for programs that the rank starts, and that of JAX's coordinator;
    the pool's group uses neither. `nodes` are all nodes, if there are, or were, several.
    """
    masks = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    nodes = nodes or [PoolNode("", "127.0.0.1", list(range(world_size)))]
    group = next(number for number, node in enumerate(nodes) if rank in node.ranks)
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": str(nodes[group].ranks.index(rank)),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(len(nodes[group].ranks)),
        "GROUP_RANK": str(group),
        "GROUP_WORLD_SIZE": str(len(nodes)),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": nodes[0].address,
        "MASTER_PORT": str(ports[0]),
        "JAX_COORDINATOR_ADDRESS": os.environ.get(
            "JAX_COORDINATOR_ADDRESS", f"{nodes[0].address}:{ports[1]}"
        ),
        "TORCHELASTIC_RUN_ID": pool_id,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # Nobody listens there: a program that a rank starts has a rendezvous of its own, which
        # its rank 0 serves. The store of the pool's group would remember an earlier program.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    return (
        _slurm_variables(variables, [len(node.ranks) for node in nodes])
        | masks
        | interfaces(nodes[group].address if nodes[group].name else None)
        | variables
        | {name: os.environ.get(name, value) for name, value in _NCCL.items()}
    )


def interfaces(address: str | None) -> dict[str, str]:
    """Return what has gloo and NCCL use a node's address, unless the user has set others."""
    if address is None:
        return {}
    named = [
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(one.address == address for one in addresses)
    ]
    variables = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    unset = [one for one in variables if os.environ.get(one, _LOOPBACK) == _LOOPBACK]
    return {variable: name for name in named for variable in unset}


def _slurm_variables(torchrun: dict[str, str], sizes: list[int]) -> dict[str, str]:
    """Return Slurm's variables as if Slurm had started the ranks; `sizes` are those of the nodes.

    Otherwise each rank would have those of the server, and a library that reads them first, such as
    Lightning, would take each for rank 0.
    """
    if not is_inside(os.environ):
        return {}
    return {
        "SLURM_PROCID": torchrun["RANK"],
        "SLURM_LOCALID": torchrun["LOCAL_RANK"],
        "SLURM_NODEID": torchrun["GROUP_RANK"],
        "SLURM_NTASKS": torchrun["WORLD_SIZE"],
        "SLURM_NPROCS": torchrun["WORLD_SIZE"],
        "SLURM_NTASKS_PER_NODE": str(max(sizes)),
        "SLURM_TASKS_PER_NODE": ",".join(map(str, sizes)),
        "SLURM_NNODES": str(len(sizes)),
        "SLURM_JOB_NUM_NODES": str(len(sizes)),
    }
