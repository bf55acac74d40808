"""Whether a GPU that nobody leases is in use, by whom, and how sure that is.

What cannot be seen counts as in use: memory that no listed process has, a process whose memory is
not known, and a GPU that tells neither. ``JUPYTER_DIST_UNSEEN_MEMORY`` changes that, and a line of
the administrator's policy.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.policy import read_policy
from ..common.protocol.sampler_messages import PROCESSES
from ..common.units import format_bytes

if TYPE_CHECKING:
    from ..common.protocol.sampler_messages import Gpu, GpuProcess
    from .gpu_state import GpuState

REAL_MEMORY = 64 * 2**20
"""Bytes on a GPU above which a process uses it; a desktop or a monitor has less."""
UNSEEN = "JUPYTER_DIST_UNSEEN_MEMORY"
"""The environment variable with the MiB that processes which nobody can see may use of a GPU that
counts as free; ``inf`` trusts the list of processes alone."""
_MPS = "nvidia-cuda-mps-server"
"""Lets processes use a GPU together that takes one at a time."""
_HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The first pid namespace, on all Linux machines."""


@dataclass(frozen=True)
class GpuUse:
    """What uses a GPU without a lease."""

    processes: tuple[GpuProcess, ...] = ()
    """Those that are listed, and use it or may do."""
    unseen: str = ""
    """What is known of others, in words after "GPU 6 is"."""

    def __str__(self) -> str:
        """Return words that follow "GPU 6 is"."""
        named = f"used by {'; '.join(map(name_process, self.processes))}"
        return "; ".join(filter(None, [named if self.processes else "", self.unseen]))

    def to_json(self) -> dict[str, Any]:
        """Return what REST tells."""
        pids = [row.pid for row in self.processes]
        return {"words": str(self), "pids": pids, "unseen": bool(self.unseen)}

    def without(self, pid: int | None) -> GpuUse | None:
        """Return what uses it besides a process of this machine; `None` if nothing does."""
        # Without a name, the pid is one of another namespace's, and tells nothing.
        rows = tuple(row for row in self.processes if not (row.command and row.pid == pid))
        return GpuUse(rows, self.unseen) if rows or self.unseen else None


def in_use(gpus: GpuState, leases: Container[str] = ()) -> dict[str, GpuUse]:
    """Return by UUID what uses GPUs that nobody leases, in the order of GPUs."""
    unleased = (gpu for gpu in gpus.inventory.gpus if gpu.uuid not in leases)
    return {gpu.uuid: use for gpu in unleased if (use := _use(gpu, gpus))}


def _use(gpu: Gpu, gpus: GpuState) -> GpuUse | None:
    rows, errors = gpus.processes.get(gpu.uuid, []), gpus.errors.get(gpu.uuid, {})
    used = gpus.samples.get(gpu.uuid, {}).get("memory_used")
    refused = errors.get(PROCESSES)
    if not isinstance(used, int | float):
        found = [row for row in rows if row.memory is None or row.memory > REAL_MEMORY]
        if refused and most_unseen() < float("inf"):
            why = "perhaps used by others: the driver tells neither its processes nor its memory"
            return GpuUse(tuple(found), f"{why} ({refused})")
    else:
        left = used - sum(row.memory or 0 for row in rows)
        hides = left > REAL_MEMORY  # so much that a process without a size may really use it
        found = [row for row in rows if (hides if row.memory is None else row.memory > REAL_MEMORY)]
        if left > most_unseen() and not any(row.memory is None for row in found):
            return GpuUse(tuple(found), f"used by {_unseen(refused)}, {format_bytes(left)}")
    if gpu.is_exclusive and not any(row.command == _MPS for row in rows):
        found = rows  # the smallest process keeps all others out
    return GpuUse(tuple(found)) if found else None


def sees_host_pids() -> bool:
    """Tell whether NVML's pids, which are the host's, are valid here: not in a container."""
    return sys.platform != "linux" or os.readlink("/proc/self/ns/pid") == _HOST_PID_NAMESPACE


def _unseen(refused: str | None) -> str:
    if refused:
        return f"processes that the driver does not list ({refused})"
    if sees_host_pids():
        return "processes that the driver does not list"
    return "processes that this container does not show"


def most_unseen() -> float:
    """Return how many bytes nobody needs to account for: the driver, or a desktop, has them."""
    text = os.environ.get(UNSEEN)
    try:
        if text and (mib := float(text)) >= 0:
            return mib * 2**20
    except ValueError:
        pass
    if text:
        wrong = f"{UNSEEN} is {text!r}, not a number of MiB: the default is used."
        warnings.warn(wrong, stacklevel=1)
    if (allowed := read_policy()[0].unseen_memory) is not None:
        return allowed * 2**20
    # The desktop of Windows is not listed.
    return (2048 if "microsoft" in platform.release().lower() else 512) * 2**20


def name_process(row: GpuProcess) -> str:
    """Return a process's name, pid, user and memory."""
    size = "memory unknown" if row.memory is None else format_bytes(row.memory)
    if row.command is None:
        return f"a process outside this container (pid {row.pid} on the host), {size}"
    # Its user chooses its name, which must not contain escapes for the terminal.
    command = "".join(filter(str.isprintable, row.command))
    owner = f", user {row.user}" if row.user else ""
    return f"{command}, pid {row.pid}{owner}, {size}"
