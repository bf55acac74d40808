"""Whether a pool can be parked, as far as its owner knows; its ranks know the rest."""

from __future__ import annotations

import platform

from ..common.errors import DistError
from ..common.protocol.pool_record import PoolRecord
from ..common.units import format_bytes
from ..gpus.readers.read_gpu_state import read_gpu_state
from ..gpus.used_without_lease import name_process
from .live_record import check_running

_RESERVE = 1.2
"""The driver needs somewhat more than what torch has reserved."""


def check_parkable(record: PoolRecord) -> None:
    """Raise `DistError` if a pool cannot be parked."""
    check_running(record, "be parked")
    gpus = [rank.gpu for rank in record.ranks if rank.gpu]
    dead = next((rank.rank for rank in record.ranks if rank.state == "dead"), None)
    if record.park_after is None:
        raise _cannot(
            "It was not started for that.",
            "Start a pool with %dist_init --park-after 20m: this sets up NCCL for the driver.",
        )
    if not gpus:
        raise _cannot("It has no GPUs that others could use.")
    if record.other_nodes:
        raise _cannot("It is on several nodes.")
    if record.resizing and not record.resizing.failure:
        raise _cannot("It is being resized.")
    if record.leases != "exclusive":
        raise _cannot("It shares its GPUs with other pools.")
    if any(":" in gpu.label for gpu in gpus):
        raise _cannot("The driver parks no processes on MIG instances.")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise _cannot(f"The driver parks processes on x86-64 only, not on {platform.machine()}.")
    if dead is not None:
        hint = f"Replace it with %dist_restart --ranks {dead} first."
        raise _cannot(f"Rank {dead} is dead.", hint)


async def check_nobody_else(record: PoolRecord) -> None:
    """Raise `DistError` if processes besides the ranks use the GPUs, as they would stay there."""
    seen = await read_gpu_state()
    pids = {rank.pid for rank in record.ranks}
    for gpu in (rank.gpu for rank in record.ranks if rank.gpu):
        for process in seen.processes.get(gpu.uuid, []):
            # Without a name, the pid is of another namespace, and perhaps that of a rank.
            if process.command and process.pid not in pids:
                raise _cannot(f"GPU {gpu.label} is also used by {name_process(process)}.")


def check_memory(needed: int, available: int) -> None:
    """Raise `DistError` if the host has less memory than is `needed` on GPUs, in bytes."""
    if needed * _RESERVE > available:
        raise _cannot(
            f"Its ranks have {format_bytes(needed)} on their GPUs, and this machine has "
            f"{format_bytes(available)} of memory left.",
            "Delete what is not needed, or run torch.cuda.empty_cache() on the ranks.",
        )


def _cannot(why: str, hint: str = "") -> DistError:
    return DistError("cannot_park", f"The pool cannot be parked. {why}", hint)
