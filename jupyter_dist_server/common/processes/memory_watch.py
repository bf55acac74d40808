"""Whether Linux has killed a process because memory was short."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from .control_groups import folders

_KERNEL_LOG = Path("/dev/kmsg")


class MemoryWatch:
    """Knows whether Linux has killed a process because memory was short.

    The kernel log tells so, to those who may read it; the control group's counter tells everybody,
    but not whom. See https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files.

    Parameters
    ----------
    log : Path
        The kernel log.
    """

    def __init__(self, log: Path = _KERNEL_LOG) -> None:
        self._log = log
        self._killed = _oom_kills()

    def explain(self, pid: int, age: float) -> str:
        """Return words to add to the exit of a killed process, none if memory was not short.

        Parameters
        ----------
        pid : int
            The process.
        age : float
            Seconds since it began; another had its number before.
        """
        before, self._killed = self._killed, _oom_kills()
        for line in _kernel_log(self._log, age):
            if re.search(rf"[Oo]ut of memory: Killed process {pid}\b", line):
                return f", out of memory: {line}"
        if before is not None and self._killed is not None and self._killed > before:
            return (
                ", probably out of memory: the oom_kill counter of its control group has increased"
            )
        return ""


def _kernel_log(path: Path, age: float) -> list[str]:
    """Return the messages of the last `age` seconds that we may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    since = time.clock_gettime(time.CLOCK_MONOTONIC) - age - 1.0
    messages = []
    try:
        while record := os.read(descriptor, 8192):  # each read gives one record
            about, _, message = record.decode(errors="replace").partition(";")
            fields = about.split(",")
            if len(fields) > 2 and int(fields[2]) / 1e6 > since:
                messages.append(message.partition("\n")[0])
    except BlockingIOError:  # that was the last one
        pass
    except BrokenPipeError:  # it is written faster than we read; the counter must do
        pass
    finally:
        os.close(descriptor)
    return messages


def _oom_kills() -> int | None:
    """Return how often the kernel has killed in our control group; `None` if nobody counts."""
    for folder in folders("memory"):
        for name in ("memory.events", "memory.oom_control"):  # the second is version 1's
            try:
                found = re.search(r"^oom_kill (\d+)", (folder / name).read_text(), re.M)
            except OSError:
                continue
            if found:
                return int(found[1])
    return None
