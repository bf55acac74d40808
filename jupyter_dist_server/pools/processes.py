"""Naming processes exactly, and ending exactly those: never by name, never by pid alone."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

RESTARTED, STOPPED = "restarted", "stopped"
"""How a rank ended that we ended ourselves; any other end is a death."""


@dataclass(frozen=True)
class ProcessRef:
    """One process for good: a pid is used again, a pid with its start time is not."""

    pid: int
    start_time: float

    @classmethod
    def of(cls, pid: int) -> ProcessRef:
        """Name a process that is running now."""
        return cls(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """Return the process, or `None` if it has ended."""
        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.start_time) > 0.01:
                return None
            return None if process.status() == psutil.STATUS_ZOMBIE else process
        except psutil.NoSuchProcess:
            return None


def end_now(processes: Iterable[psutil.Process], patience: float = 5.0) -> list[psutil.Process]:
    """Kill processes and wait for them; psutil checks each one's start time.

    Returns
    -------
    list of psutil.Process
        Those that are still there after `patience` seconds (in an uninterruptible system call).
    """
    processes = list(processes)
    for process in processes:
        with contextlib.suppress(psutil.Error):  # gone already, or another user's (sudo)
            process.kill()
    _, alive = psutil.wait_procs(processes, timeout=patience)
    return alive


def session_members(leaders: Iterable[ProcessRef]) -> list[psutil.Process]:
    """Find all processes of the sessions that ranks lead, orphans included.

    A session's number stays taken as long as one member lives, so a live leader with another start
    time means that the session we knew is gone.
    """
    sessions = {}
    for leader in leaders:
        try:
            created = psutil.Process(leader.pid).create_time()
        except psutil.NoSuchProcess:
            created = leader.start_time
        if abs(created - leader.start_time) <= 0.01:
            sessions[leader.pid] = leader
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
    return members


def exit_words(status: int) -> str:
    """Say how a process ended, from `os.waitpid`'s status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in signal.Signals.__members__.values()
        name = signal.Signals(number).name if known else "a real-time signal"
        return f"killed by signal {number} ({name})"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"
