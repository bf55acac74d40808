"""Processes without a lease that use GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...common.protocol.sampler_messages import GpuProcess
    from ...gpus.gpu_state import GpuState

REAL_MEMORY = 64 * 2**20
"""Bytes on a GPU above which a process uses it; a desktop or a monitor has less."""


def without_lease(gpus: GpuState, leases: Mapping[str, object]) -> dict[str, list[GpuProcess]]:
    """Return by UUID the processes that use GPUs that nobody leases, in the order of GPUs."""
    found = {
        gpu.uuid: [
            row for row in gpus.processes.get(gpu.uuid, []) if (row.memory or 0) > REAL_MEMORY
        ]
        for gpu in gpus.inventory.gpus
        if gpu.uuid not in leases
    }
    return {uuid: rows for uuid, rows in found.items() if rows}


def used_by(rows: Iterable[GpuProcess]) -> str:
    """Return words that follow "GPU 6 is"."""
    names = sorted({_name(row) for row in rows})
    return "".join(filter(str.isprintable, f"used by {', '.join(names)}"))


def _name(row: GpuProcess) -> str:
    if row.command is None:
        return f"a process outside this container (pid {row.pid} on the host)"
    return f"{row.command} (pid {row.pid}{f', {row.user}' if row.user else ''})"
