"""The control groups of this process: what they let it use, and what they count.

Version 1 has a hierarchy of groups for each controller, version 2 one for all:
https://docs.kernel.org/admin-guide/cgroup-v1/cgroups.html and
https://docs.kernel.org/admin-guide/cgroup-v2.html.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")


def machine_cores() -> int:
    """Return how many cores this machine has."""
    return os.cpu_count() or 1


def machine_memory() -> int:
    """Return the bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def usable_cores(root: Path = _ROOT) -> int:
    """Return how many cores this process may keep busy; `root` has ``proc`` and ``sys``.

    Its affinity (``taskset``, Slurm) limits them, and so does a quota of time, as containers have.
    """
    known = hasattr(os, "sched_getaffinity")  # macOS has none
    cores = len(os.sched_getaffinity(0)) if known else machine_cores()
    for folder in folders("cpu", root):
        limit = _read(folder / "cpu.max") or " ".join(
            _read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")
        )
        quota, _, period = limit.partition(" ")
        if quota.isdecimal() and period.isdecimal():  # not “max”, or -1
            cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
    return cores


def usable_memory(root: Path = _ROOT) -> int:
    """Return how many bytes of memory this process and those beside it may use."""
    memory = machine_memory()
    for folder in folders("memory", root):
        limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        if limit.isdecimal():  # not “max”
            memory = min(memory, int(limit))
    return memory


def available_memory(root: Path = _ROOT) -> int:
    """Return how many bytes of memory are left for this process and those beside it."""
    known = re.search(r"MemAvailable:\s+(\d+) kB", _read(root / "proc/meminfo"))
    memory = int(known[1]) * 1024 if known else machine_memory()
    for folder in folders("memory", root):
        limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        used = _read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes")
        cached = re.search(r"(?:total_)?inactive_file (\d+)", _read(folder / "memory.stat"))
        if limit.isdecimal() and used.isdecimal():
            left = int(limit) - int(used) + int(cached[1] if cached else 0)
            memory = min(memory, max(0, left))
    return memory


def folders(controller: str, root: Path = _ROOT) -> Iterator[Path]:
    """Yield the folders of our group for a controller, and of the visible ones above it.

    In a container, only the topmost of its own groups may be there.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            # In version 1, controllers that are mounted together have a link for each.
            top = root / "sys/fs/cgroup" / (controller if controllers else "")
            group = top / path.lstrip("/")
            yield from (
                one for one in (group, *group.parents) if one.is_relative_to(top) and one.is_dir()
            )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # another version's, or of a controller that is off
        return ""


class MemoryWatch:
    """Knows whether Linux has killed a process beside this one because memory was short."""

    def __init__(self) -> None:
        self._killed = _oom_kills()

    def explain(self) -> str:
        """Return words to add to the exit of a killed process, none if memory was not short."""
        before, self._killed = self._killed, _oom_kills()
        if before is None or self._killed is None or self._killed <= before:
            return ""
        return ", probably out of memory: the oom_kill counter of its control group has increased"


def _oom_kills() -> int | None:
    """Return how often the kernel has killed in our control group; `None` if it does not count."""
    for folder in folders("memory"):
        for name in ("memory.events", "memory.oom_control"):  # the second is version 1's
            if found := re.search(r"^oom_kill (\d+)", _read(folder / name), re.M):
                return int(found[1])
    return None
