"""Finds the processes that a pool has started, and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Iterable

import psutil

from .process_ref import ProcessRef


async def ended_now(
    processes: Iterable[psutil.Process], patience: float = 5.0
) -> list[psutil.Process]:
    """Kill processes, and return those that are still there after a while (in a system call)."""
    alive = list(processes)
    for process in alive:
        with contextlib.suppress(psutil.Error):  # gone already, or another user's (sudo)
            process.kill()
    deadline = time.monotonic() + patience
    while (alive := list(filter(is_alive, alive))) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return alive


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process has not ended; one that is a zombie has."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def session_members(leaders: Iterable[ProcessRef]) -> list[psutil.Process]:
    """Find all processes of the sessions that ranks lead, orphans included.

    A session's number stays taken as long as one member lives, so a live leader with another start
    time means that the session is gone.
    """
    sessions = set()
    for leader in leaders:
        try:
            current = ProcessRef.of(leader.pid)
        except psutil.NoSuchProcess:
            current = leader
        if current == leader:
            sessions.add(leader.pid)
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
    return members


def reap_orphans(ours: Collection[int | None]) -> None:
    """Reap adopted processes that have ended, except `ours`, which are reaped elsewhere."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.pid not in ours and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def members_of_pool(pool_id: str, ranks: Collection[int] | None = None) -> list[psutil.Process]:
    """Find what some or all ranks have started, by its environment."""
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get("TORCHELASTIC_RUN_ID") == pool_id and (
                ranks is None or environment.get("RANK") in [str(rank) for rank in ranks]
            ):
                members.append(process)
    return members
