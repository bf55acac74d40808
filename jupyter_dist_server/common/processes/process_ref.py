"""Identifies processes: never by name, never by pid alone.

psutil and ctypes are imported where they are used, because that takes as long as many a command of
``jdist``.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

RESTARTED, STOPPED = "restarted", "stopped"
"""How a rank ended that we ended ourselves; any other end is a death."""
RESIZED = "left out, as the pool has another size now"
KILLED = "killed by request"
"""Why a rank is dead that a user had killed; for its other users, it has died."""
UNKNOWN_EXIT = 1 << 8
"""Stands for the exit code of a process that is not a child of ours; no process has it."""
POOL_ENDED = "the pool has ended"
"""Why a rank does not answer any more, if its agent is gone."""
OTHER_SIZE = "in a collective where this one expected"
"""Part of why a rank ended that gloo has ended, as another's tensor is larger than its own."""


@cache
def boot_id() -> str:
    """Return the ID of this boot of the machine; no process outlives it."""
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    else:  # not the moment of the boot, which moves with the clock
        import ctypes

        answer = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(answer))
        read = ctypes.CDLL(None).sysctlbyname
        read(b"kern.bootsessionuuid", answer, ctypes.byref(size), None, ctypes.c_size_t(0))
        return answer.value.decode()


def _start_ticks(pid: int) -> int:
    """Return when a process started, by a clock that cannot be set, or raise `NoSuchProcess`."""
    if sys.platform != "linux":  # elsewhere the kernel notes it once, in microseconds
        import psutil

        return round(psutil.Process(pid).create_time() * 1_000_000)
    if (found := _stat(pid)) is None:
        import psutil

        raise psutil.NoSuchProcess(pid)
    return found[1]


def _stat(pid: int) -> tuple[bytes, int] | None:
    """Return the state of a process on Linux and when it started, `None` if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(b")")[2].split()  # from the third on; a name may contain spaces
    return fields[0], int(fields[19])


@dataclass(frozen=True)
class ProcessRef:
    """One process for good: a pid is used again, a pid with its boot and start is not."""

    pid: int
    start_ticks: int
    """Clock ticks between the boot and its start (Linux), which setting the clock does not move."""
    boot: str = field(default_factory=boot_id)

    @classmethod
    def of(cls, pid: int) -> ProcessRef:
        """Identify a process that is running now."""
        return cls(pid, _start_ticks(pid))

    @property
    def age(self) -> float:
        """Seconds since it started."""
        if sys.platform != "linux":
            return time.time() - self.start_ticks / 1_000_000
        ticks_per_second = os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_ticks / ticks_per_second

    def find(self) -> psutil.Process | None:
        """Return the process, or `None` if it has ended."""
        import psutil

        try:
            process = psutil.Process(self.pid)
            if (_start_ticks(self.pid), boot_id()) != (self.start_ticks, self.boot):
                return None
            return None if process.status() == psutil.STATUS_ZOMBIE else process
        except psutil.NoSuchProcess:
            return None


async def until_ended(process: ProcessRef) -> None:
    """Return when a process has ended; it need not be a child of ours."""
    import asyncio  # not above: commands in a terminal do without

    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # no pidfds on macOS and in some sandboxes
        while process.find():
            await asyncio.sleep(0.5)
        return
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        if process.find():  # or the pid belongs to another process by now
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def is_stopped(reference: ProcessRef) -> bool:
    """Tell whether a process is stopped, by a signal or a debugger."""
    if sys.platform != "linux":
        import psutil

        process = reference.find()
        try:
            return process is not None and process.status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False
    state, start = _stat(reference.pid) or (b"", 0)
    is_same = (start, boot_id()) == (reference.start_ticks, reference.boot)
    return is_same and state in (b"T", b"t")


def call_ourselves(name: str) -> None:
    """Set the name of this process in `ps` and `top`; a fork has its parent's command line."""
    if sys.platform == "linux":
        import ctypes

        PR_SET_NAME = 15
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def adopt_descendants() -> None:
    """Become the parent of processes that our children leave behind, where that is possible."""
    if sys.platform == "linux":
        import ctypes

        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def give_memory_back() -> None:
    """Give freed memory back to the kernel; glibc does so only when it is asked."""
    import ctypes

    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc's
        trim(0)
