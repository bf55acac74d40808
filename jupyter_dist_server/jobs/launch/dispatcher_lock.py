"""The lock that makes one dispatcher of many, and tells who it is.

An open file description lock, as whoever only looks need not lock anything, and so is in nobody's
way. See https://man7.org/linux/man-pages/man2/fcntl_locking.2.html.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.files.own_files import own

if TYPE_CHECKING:
    import psutil

_FLOCK = "hhqqi4x"
"""``struct flock``: type, whence, start, length, pid."""
_WANTED = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)


def take_lock(folder: Path) -> io.FileIO | None:
    """Lock a folder for a dispatcher, ourselves or one to be started; `None` if there is one."""
    lock = open_lock(folder)
    try:
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _WANTED)
    except (BlockingIOError, PermissionError):
        lock.close()
        return None
    return lock


def open_lock(folder: Path) -> io.FileIO:
    """Open the file for a dispatcher that waits until the present one has ended."""
    return own(_open(folder))


def wait_for_lock(lock: io.FileIO) -> None:
    """Lock a file that may be locked already, by us or for us by the process that started us."""
    fcntl.fcntl(lock, fcntl.F_OFD_SETLKW, _WANTED)


def sign(lock: io.FileIO) -> None:
    """Write into the lock that this process is the dispatcher."""
    from ...common.processes.process_ref import ProcessRef

    us = ProcessRef.of(os.getpid())
    file = lock.fileno()
    os.ftruncate(file, os.pwrite(file, f"{us.pid} {us.start_ticks} {us.boot}".encode(), 0))


def stopped(folder: Path) -> psutil.Process | None:
    """Return the dispatcher if it is stopped (SIGSTOP), and so starts nothing."""
    lock = _open(folder)
    try:
        if not _is_locked(lock):
            return None
        from ...common.processes.process_ref import ProcessRef, is_stopped

        with contextlib.suppress(ValueError):
            pid, start, boot = os.pread(lock, 256, 0).decode().split()
            dispatcher = ProcessRef(int(pid), int(start), boot)
            if is_stopped(dispatcher):
                return dispatcher.find()
        return None
    finally:
        os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_locked(lock: int) -> bool:
    kind: int = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _WANTED))[0]
    return kind != fcntl.F_UNLCK
