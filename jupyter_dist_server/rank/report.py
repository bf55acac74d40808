"""A rank's report about itself: its pid on the host, its memory, its GPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psutil


class RankReport:
    """Says it on the control thread, and never waits for what the main thread does.

    Parameters
    ----------
    device : str
        ``cpu``, or ``cuda:I`` as torch counts in this process.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._gpu: dict[str, Any] | None = None

    def take(self, idle: bool) -> dict[str, Any]:
        """Return ``{pid, host_pid, memory, gpu}``.

        Parameters
        ----------
        idle : bool
            Whether no cell runs. While one does, the last figures of the GPU are told: torch counts
            under the lock of its allocator, which a hanging GPU may hold for ever.

        Returns
        -------
        dict
            `host_pid` is the pid where ``/proc`` was mounted, `memory` the resident set in bytes;
            `gpu` is `None` unless CUDA is in use, else ``{uuid, allocated, reserved}``: the
            device's UUID, as CUDA gives it, and torch's memory in bytes, see
            https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management.
        """
        if idle:
            self._gpu = _gpu(self._device)
        return {
            "pid": os.getpid(),
            "host_pid": _host_pid(),
            "memory": psutil.Process().memory_info().rss,
            "gpu": self._gpu,
        }


def _host_pid() -> int:
    """Return the first pid of ``NSpid``; see proc_pid_status(5)."""
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[1])
    return os.getpid()


def _gpu(device: str) -> dict[str, Any] | None:
    torch = sys.modules["torch"]
    if device == "cpu" or not torch.cuda.is_initialized():
        return None
    # The device is named: the current one is each thread's own, and this is not the cell's thread.
    return {
        "uuid": str(torch.cuda.get_device_properties(device).uuid),
        "allocated": torch.cuda.memory_allocated(device),
        "reserved": torch.cuda.memory_reserved(device),
    }
