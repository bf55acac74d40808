"""The processes on a GPU, as NVML and this machine know them.

psutil is imported when there is a process to look up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from ...common.protocol.sampler_messages import PROCESSES, GpuProcess
from ..metrics import Processes
from ..nvml import NO_PERMISSION, UNSUPPORTED, Failure, query
from .read_one_gpu import Reader

_HIDDEN = "a hidden process"
"""A process of another user that ``/proc`` does not show (``hidepid``)."""
_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
"""The last has the clients of MPS, of which the first has the server alone."""
_VERSIONS = ("_v3", "_v2")
"""Of these functions, the newest first: a driver may not have it."""


_Words = tuple[str | None, str | None, float | None]
"""User, command and start time of a process."""
_NOTHING: _Words = None, None, None
_Known = dict[tuple[int, float], _Words]
"""By pid and start."""


class ProcessReader:
    """Reads the processes on GPUs; looks them up if NVML's pids are valid here."""

    def __init__(self, host_pids: bool) -> None:
        self._host_pids = host_pids
        self._known: _Known = {}

    def read(self, readers: Iterable[Reader]) -> Processes:
        """Return the processes of each GPU by UUID, those with most memory first."""
        before, self._known = self._known, {}
        found: Processes = {}
        for reader in readers:
            if reader.source:
                handle = reader.source.device.handle
                memory = memory_by_pid(handle)
                reader.errors.pop(PROCESSES, None)
                if isinstance(memory, Failure):
                    reader.errors[PROCESSES], memory = memory, {}
                found[reader.gpu.uuid] = self._rows(handle, memory, before)
        return found

    def _rows(self, handle: Any, memory: dict[int, int | None], before: _Known) -> list[GpuProcess]:
        sm = _sm(handle) if memory else {}
        # In a container, the driver may mix our pids and the host's.
        idle = 0 if self._host_pids else None
        rows = []
        for pid, size in memory.items():
            user, command, start_time = self._look_up(pid, before)
            busy = None if sm is None else sm.get(pid, idle)
            rows.append(GpuProcess(pid, user, command, size, busy, start_time))
        return sorted(rows, key=lambda row: (-(row.memory or 0), row.pid))

    def _look_up(self, pid: int, before: _Known) -> _Words:
        if not self._host_pids:
            return _NOTHING
        import psutil

        try:
            process = psutil.Process(pid)
            key = pid, process.create_time()
            self._known[key] = before.get(key) or (process.username(), process.name(), key[1])
        except psutil.Error:
            return (None, _HIDDEN, None) if _is_hidden(pid) else _NOTHING  # or it has ended
        return self._known[key]


def _is_hidden(pid: int) -> bool:
    """Tell whether another user's process runs that ``/proc`` does not show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def memory_by_pid(handle: Any) -> dict[int, int | None] | Failure:
    """Return the bytes that each process uses on a GPU, `None` where the driver does not know."""
    memory: dict[int, int | None] = {}
    for function in _LISTS:
        listed = _ask(function, handle)
        if isinstance(listed, Failure):
            if function == _LISTS[0]:
                return listed
            continue
        for process in listed:
            sizes = [size for size in (memory.get(process.pid), process.usedGpuMemory) if size]
            memory[process.pid] = max(sizes, default=None)  # a process may be in both lists
    return memory


def _ask(function: str, handle: Any) -> list[Any] | Failure:
    answer: list[Any] | Failure = UNSUPPORTED
    for version in _VERSIONS:
        answer = query(function + version, handle)
        if answer != UNSUPPORTED:
            break
    return answer


def _sm(handle: Any) -> dict[int, int] | None:
    """Return the SM utilization of recently active processes; `None` if it is not supported.

    The driver adds rows of pid 0, rows with impossible percentages, and rows that are hours old.
    """
    since = int((time.time() - 5.0) * 1e6)
    samples = query("nvmlDeviceGetProcessUtilization", handle, since)
    if isinstance(samples, Failure):  # also if no process was active
        return None if samples in (UNSUPPORTED, NO_PERMISSION) else {}
    good = [s for s in samples if s.pid and s.smUtil <= 100 and s.timeStamp > since]
    return {s.pid: s.smUtil for s in sorted(good, key=lambda sample: sample.timeStamp)}
