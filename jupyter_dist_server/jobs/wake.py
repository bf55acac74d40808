"""Waiting until files in folders change, without looking again and again: Linux's inotify.

See https://man7.org/linux/man-pages/man7/inotify.7.html. Where it cannot be had, waits are short.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
from collections.abc import Iterable
from pathlib import Path

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_TO, _DELETE = 0x2, 0x4, 0x8, 0x80, 0x200
_EVENTS = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_TO | _DELETE
_WITHOUT = 1.0
"""Seconds between two looks where no inotify instance or watch is left."""


class Wake:
    """Waits for changes in folders, and for other descriptors.

    Parameters
    ----------
    folders : iterable of Path
        Those to watch.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._poll = select.poll()
        self.watches = False
        """Whether changes wake us, or only time does."""
        self._events = -1
        self._watched: dict[str, int] = {}
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._events = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
            self.watches = self._events >= 0 and all(map(self.watch, folders))
            if self._events >= 0:
                self._poll.register(self._events, select.POLLIN)

    def watch(self, folder: Path | str) -> bool:
        """Wake when something changes in another folder, too; tell whether that is possible."""
        if self._events < 0:
            return False
        watch: int = self._libc.inotify_add_watch(self._events, os.fsencode(folder), _EVENTS)
        if watch >= 0:
            self._watched[str(folder)] = watch
        return watch >= 0

    def unwatch(self, folder: Path | str) -> None:
        """Wake no longer when something changes in a folder."""
        if (watch := self._watched.pop(str(folder), None)) is not None:
            self._libc.inotify_rm_watch(self._events, watch)  # fails if the folder is gone

    @property
    def descriptor(self) -> int | None:
        """What can be read after a change, for an event loop; `None` where only time wakes."""
        return self._events if self._events >= 0 else None

    def drain(self) -> None:
        """Take note of all changes so far."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._events, 65536):
                pass

    def add(self, descriptor: int) -> None:
        """Wake when a descriptor can be read, too."""
        self._poll.register(descriptor, select.POLLIN)

    def remove(self, descriptor: int) -> None:
        """Wait for a descriptor no longer."""
        self._poll.unregister(descriptor)

    def wait(self, seconds: float | None) -> set[int]:
        """Wait for a change; return the descriptors that can be read."""
        if not self.watches:
            seconds = _WITHOUT if seconds is None else min(seconds, _WITHOUT)
        timeout = None if seconds is None else max(0, round(seconds * 1000) + 1)
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout)}
        if self._events in ready:
            ready.discard(self._events)
            self.drain()
        return ready

    def close(self) -> None:
        """Stop to watch."""
        if self._events >= 0:
            os.close(self._events)
