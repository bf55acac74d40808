"""What a job has started: found and ended by its runner, which adopts all orphans.

Without psutil, which would take a megabyte of each runner.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..variables import DISPATCHER

_SHELLS = {"ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "sh", "tcsh", "zsh"}
_END_OTHERS = {signal.SIGUSR1, signal.SIGUSR2}
"""Signals that end every process that does not handle them, such as ``tee`` behind a program."""


class Descendant(NamedTuple):
    """A process, as it was when it was found."""

    pid: int
    start: int
    """Clock ticks from boot to its start: another process may have the pid by now."""
    parent: int
    is_zombie: bool
    name: str


def descendants() -> list[Descendant]:
    """Return all processes that our job has started and that still exist."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # at once, if nothing is left
        return []
    return descendants_of(os.getpid())


def descendants_of(runner: int) -> list[Descendant]:
    """Return all processes that the job of a runner has started and that still exist.

    A dispatcher that the runner has started for jobs submitted by its own is left out, with its
    runners.
    """
    children: dict[int, list[Descendant]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (process := _look_up(int(name))):
            children.setdefault(process.parent, []).append(process)
    found, parents = [], [runner]
    while parents:
        for process in children.get(parents.pop(), ()):
            if not _is_dispatcher(process.pid):
                parents.append(process.pid)
                found.append(process)
    return [process for process in found if not process.is_zombie]


def _read(pid: int, name: str) -> bytes:
    """Read a file of a process; empty if it is gone, or another user's (sudo)."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _look_up(pid: int) -> Descendant | None:
    if not (stat := _read(pid, "stat")):
        return None
    start, _, end = stat.rpartition(b")")  # a name may contain spaces, and brackets
    fields = end.split()
    name = start.partition(b"(")[2].decode(errors="replace")
    return Descendant(pid, int(fields[19]), int(fields[1]), fields[0] == b"Z", name)


def _is_dispatcher(pid: int) -> bool:
    mark = f"{DISPATCHER}=".encode()
    return any(one.startswith(mark) for one in _read(pid, "environ").split(b"\0"))


def _alive(processes: Iterable[Descendant]) -> list[Descendant]:
    found = []
    for process in processes:
        now = _look_up(process.pid)
        if now and now.start == process.start and not now.is_zombie:
            found.append(process)
    return found


def names(processes: Iterable[Descendant]) -> str:
    """Return the names and pids of those that have not ended."""
    return ", ".join(f"{process.name} (pid {process.pid})" for process in _alive(processes))


def send(processes: Iterable[Descendant], number: int) -> None:
    """Send a signal to all that have not ended."""
    for process in _alive(processes):
        # Gone by now, or another user's (sudo).
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def alive_after(processes: Iterable[Descendant], seconds: float) -> list[Descendant]:
    """Wait at most some seconds until processes have ended; return those that have not."""
    until = time.monotonic() + seconds
    pause = 0.0005
    while (left := _alive(processes)) and time.monotonic() < until:
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    # All that have ended are children of ours by now: without this they stay until we end.
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return left


def to_warn(
    processes: Sequence[Descendant], number: int, first: int | None = None
) -> list[Descendant]:
    """Return the processes that a signal before the time limit goes to.

    As for Slurm, programs are warned and not the shell of a script or, with `first`, that process
    alone: ``B:`` warns the shell.
    """
    if first is not None:
        return [process for process in processes if process.pid == first]
    found = [process for process in processes if not _is_shell(process.pid)]
    if number in _END_OTHERS:
        found = [process for process in found if _expects(process.pid, number)]
    return found


def _is_shell(pid: int) -> bool:
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:  # gone, or another user's (sudo)
        return False
    return os.path.basename(program).removesuffix(" (deleted)") in _SHELLS


def _expects(pid: int, number: int) -> bool:
    """Tell whether a process handles a signal, or has blocked it to wait for it."""
    status = _read(pid, "status")
    masks = re.findall(rb"^Sig(?:Cgt|Blk):\s*(\w+)", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)
