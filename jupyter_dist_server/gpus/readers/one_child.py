"""One process at a time asks the driver, and none while an earlier one hangs in it.

Not even SIGKILL ends a process that hangs inside a system call, so each further one would be left
too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import psutil

_END = 2.0
"""Seconds within which a process that was killed has ended, unless it hangs in a system call."""
_STARVED = 10.0
"""The same if it is in none, but gets no processor."""
_LOOK = 0.02

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_killed: dict[int, psutil.Process] = {}
"""Processes that were killed and may have ended since, by pid."""


class DriverHangsError(Exception):
    """Says in one sentence why the driver is not asked."""


def note_killed(pid: int) -> None:
    """Remember a process that was killed as the driver did not answer it."""
    import psutil  # not above: the processes that ask the driver do without

    try:
        _killed[pid] = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return


async def check_driver() -> None:
    """Raise `DriverHangsError` if a process that was killed still hangs in the driver."""
    begun = time.monotonic()
    while stuck := _stuck():
        pid, patience = stuck
        if time.monotonic() - begun > patience:
            raise DriverHangsError(
                f"The NVIDIA driver hangs: process {pid} waits for it and cannot be killed."
            )
        await asyncio.sleep(_LOOK)


def _stuck() -> tuple[int, float] | None:
    """Return a process that was killed and has not ended, and for how many seconds it may so."""
    import psutil

    for pid, process in list(_killed.items()):
        try:
            if process.is_running() and (status := process.status()) != psutil.STATUS_ZOMBIE:
                return pid, _END if status == psutil.STATUS_DISK_SLEEP else _STARVED
        except psutil.NoSuchProcess:
            pass
        del _killed[pid]
    return None


@asynccontextmanager
async def asking_driver(timeout: float) -> AsyncIterator[None]:
    """Wait until a process may be started that asks the driver; the block is for its life.

    Raises
    ------
    DriverHangsError
        If others have it for `timeout` seconds, or an earlier one still hangs.
    """
    lock = _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    try:
        await asyncio.wait_for(lock.acquire(), timeout)
    except asyncio.TimeoutError:
        raise DriverHangsError(f"The NVIDIA driver did not respond within {timeout:g} s.") from None
    try:
        await check_driver()
        yield
    finally:
        lock.release()
