"""A pool that has another size now: what a rank that went on changes for its programs."""

from __future__ import annotations

import os
from typing import Any

from .process_group import ProcessGroup

_SIZES = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE")
_SIZES_OF_SLURM = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
)
_WRAPPERS = {"DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule"}


def take_size(group: ProcessGroup, shell: Any, world_size: int) -> list[str]:
    """Tell programs of this rank the new size; return the names of modules that have the old one.

    Which GPUs CUDA shows to this process cannot be changed; it needs none of the new ones.
    """
    group.resize(world_size)
    known = [*_SIZES, *(name for name in _SIZES_OF_SLURM if name in os.environ)]
    os.environ.update(dict.fromkeys(known, str(world_size)))
    shell.push({"world_size": world_size}, interactive=False)
    return wrapped_modules(shell)


def wrapped_modules(shell: Any) -> list[str]:
    """Return the names of modules that have a process group."""
    return sorted(name for name, value in shell.user_ns.items() if _is_wrapped(name, value))


def _is_wrapped(name: str, value: Any) -> bool:
    return name[0] != "_" and any(base.__name__ in _WRAPPERS for base in type(value).__mro__)
