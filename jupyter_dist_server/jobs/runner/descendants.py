"""What a job has started: found by our being the parent of all orphans, and ended."""

from __future__ import annotations

import contextlib
import os

import psutil

from ..variables import DISPATCHER


def has_any() -> bool:
    """Tell whether anything is left; at once, where nothing is."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants() -> list[psutil.Process]:
    """Return all that the job has started and is still there, orphans included: we adopt them.

    A dispatcher that we have started for jobs which it has submitted, and theirs, are left out.
    """
    others: set[int] = set()
    found = []
    for process in psutil.Process().children(recursive=True) if has_any() else ():
        with contextlib.suppress(psutil.NoSuchProcess):  # parents come first
            if process.ppid() in others or _is_dispatcher(process):
                others.add(process.pid)
            elif _is_alive(process):
                found.append(process)
    return found


def _is_dispatcher(process: psutil.Process) -> bool:
    try:
        return DISPATCHER in process.environ()
    except psutil.AccessDenied:  # another user's (sudo)
        return False


def names(processes: list[psutil.Process]) -> str:
    """Return what processes are called, with their pids; those that have ended are left out."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(f"{process.name()} (pid {process.pid})")
    return ", ".join(found)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def send(processes: list[psutil.Process], number: int) -> None:
    """Send a signal to all of them."""
    for process in processes:
        with contextlib.suppress(psutil.Error):  # gone by now, or another user's (sudo)
            process.send_signal(number)
