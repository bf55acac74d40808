"""A rank's report about itself: its pid on the host, its memory and its GPU."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import psutil

from ..common.processes.process_memory import ProcessMemory
from ..common.protocol.ranks.rank_messages import RankReport, TorchMemory


class Reporter:
    """Reports on the control thread, and never waits for the main thread.

    `device` is ``cpu``, or ``cuda:I`` as torch counts in this process.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.is_parked = False
        """Whether no CUDA call may be made: it would wait until the rank is resumed."""
        self._memory = ProcessMemory(psutil.Process())
        self._gpu: TorchMemory | None = None

    def take(self, idle: bool) -> RankReport:
        """Return what this process is and uses now.

        If it is not idle, or parked, the GPU's last values stay: torch counts under a lock that a
        hanging GPU may hold.
        """
        if idle and not self.is_parked:
            with contextlib.suppress(RuntimeError):  # its GPU has failed: the last values stay
                self._gpu = torch_memory(self.device)
        return RankReport(
            os.getpid(), _host_pid(), self._memory.read(), self._gpu, time.process_time()
        )


def _host_pid() -> int:
    """Return the first pid of ``NSpid``; see proc_pid_status(5)."""
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[1])
    return os.getpid()


def torch_memory(device: str) -> TorchMemory | None:
    """Return torch's use of a rank's GPU, if CUDA is in use."""
    torch = sys.modules["torch"]
    if device == "cpu" or not torch.cuda.is_initialized():
        return None
    # The current device belongs to a thread, and this is not the cell's thread.
    about = torch.cuda.get_device_properties(device)
    return TorchMemory(
        uuid=str(about.uuid),
        allocated=torch.cuda.memory_allocated(device),
        reserved=torch.cuda.memory_reserved(device),
        peak=torch.cuda.max_memory_allocated(device),
        total=about.total_memory,
    )
