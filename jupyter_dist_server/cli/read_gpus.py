"""Reading NVML once, from a command; asyncio is imported only for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..gpus.gpu_state import GpuState


def read_now() -> GpuState:
    """Return what NVML says."""
    import asyncio

    from ..gpus.gpu_state import read_gpu_state

    return asyncio.run(read_gpu_state())
