"""Linux's inotify: a descriptor that can be read once something changes in folders or files.

See https://man7.org/linux/man-pages/man7/inotify.7.html.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

from .own_files import own

MODIFY, ATTRIB, CLOSE_WRITE, MOVED_TO = 0x2, 0x4, 0x8, 0x80
DELETE, DELETE_SELF, MOVE_SELF = 0x200, 0x400, 0x800
_EVENT = struct.Struct("iIII")


class Inotify:
    """One instance, which counts among the few that a user may have.

    Raises `OSError` if the system has none, or no more.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("inotify is Linux's")
        self._libc = ctypes.CDLL(None, use_errno=True)
        descriptor = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if descriptor < 0:
            raise _error()
        self._file = own(descriptor)

    def fileno(self) -> int:
        """Return what can be read once something has changed."""
        return self._file.fileno()

    def watch(self, path: Path | str, events: int) -> int:
        """Watch a folder or a file, and return the number of the watch.

        Raises `OSError` if there is no such path, or the user may watch no more.
        """
        watch: int = self._libc.inotify_add_watch(self.fileno(), os.fsencode(path), events)
        if watch < 0:
            raise _error()
        return watch

    def unwatch(self, watch: int) -> None:
        """End a watch, unless it has ended by itself."""
        self._libc.inotify_rm_watch(self.fileno(), watch)

    def read(self) -> list[tuple[int, int, str]]:
        """Return what has changed: the watch, the events, and the name in a folder."""
        found: list[tuple[int, int, str]] = []
        while True:
            try:
                data = os.read(self.fileno(), 65536)
            except BlockingIOError:
                return found
            while data:
                watch, events, _, length = _EVENT.unpack_from(data)
                name = data[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
                found.append((watch, events, os.fsdecode(name)))
                data = data[_EVENT.size + length :]

    def close(self) -> None:
        """End all watches."""
        self._file.close()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
