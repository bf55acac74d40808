"""The environment of an agent and its ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ranks_to_gpus import Placement

_NOT_FOR_RANKS = (
    "JPY_PARENT_PID",  # ipykernel would end the rank as soon as its parent is not this process
    "JPY_INTERRUPT_EVENT",
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def agent_environment(
    base: dict[str, str], extra: dict[str, str], placement: Placement
) -> dict[str, str]:
    """Return the environment that the agent starts with and all its ranks share.

    `base` is the notebook kernel's, `extra` what the user has added.
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
    """Return the limits that the user set, for ranks after the fork: torch obeys them then.

    OpenBLAS has read 1 by then, unless the ranks are spawned.
    """
    given = base | extra
    return {name: given[name] for name in _THREADS if name in given}
