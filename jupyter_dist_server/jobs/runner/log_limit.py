"""Keeps the output of a job from filling the disk: cuts out its middle while it is written.

The file keeps its length, with a hole in it, so that its writers and readers are not disturbed. See
https://man7.org/linux/man-pages/man2/fallocate.2.html.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import time

_BLOCK = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_SOONEST, _LATEST = 0.5, 10.0
"""Seconds between two looks, at least and at most."""


class LogLimit:
    """Looks at a file from time to time: the faster it grows, the more often.

    It may have `most` bytes on the disk; a quarter at its start and a quarter at its end remain.
    """

    def __init__(self, path: str, most: int) -> None:
        self.path = path
        self._most = most
        self._keep = max(_BLOCK, most // 4 // _BLOCK * _BLOCK)
        self._last = (0, time.monotonic())
        self._pause = _SOONEST
        self.was_full = False
        """Whether the disk was seen without space left."""
        self.due: float | None = time.monotonic() + _SOONEST
        """When to look again, by the monotonic clock."""

    def look(self) -> None:
        """Cut the middle out if the file is too large."""
        with contextlib.suppress(OSError):  # gone, or on a filesystem that has no holes
            file = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._look(file)
            finally:
                os.close(file)
        if self.due is not None and self.due <= time.monotonic():
            self.due = time.monotonic() + _LATEST

    def _look(self, file: int) -> None:
        about, now = os.fstat(file), time.monotonic()
        if not stat.S_ISREG(about.st_mode):
            self.due = None
            return
        disk = os.fstatvfs(file)
        free = disk.f_bavail if os.getuid() else disk.f_bfree
        self.was_full = self.was_full or bool(disk.f_blocks and not free)  # not all tell a size
        used = about.st_blocks * 512
        if used > self._most and not self._punch(file, about.st_size):
            self.due = None
            return
        before, then = self._last
        speed = max(0.0, about.st_size - before) / max(now - then, 0.001)
        left = (self._most - min(used, self._most)) / speed / 2 if speed else _LATEST
        self._last = about.st_size, now
        self._pause = _SOONEST if left < self._pause else min(2 * self._pause, _LATEST)
        self.due = now + self._pause

    def _punch(self, file: int, size: int) -> bool:
        start = self._keep
        end = (size - self._keep) // _BLOCK * _BLOCK
        if end - start <= _BLOCK:
            return True
        libc = ctypes.CDLL(None, use_errno=True)
        places = ctypes.c_int64(start), ctypes.c_int64(end - start)
        if libc.fallocate(file, _KEEP_SIZE | _PUNCH_HOLE, *places):
            return False
        told = f"\n[jdist: {end - start} bytes of output were cut out here, see --log-max]".encode()
        os.pwrite(file, told.ljust(_BLOCK - 1) + b"\n", start)
        return True
