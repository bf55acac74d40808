"""Files with content that are valid while a process holds them."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pwd
import stat
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .shared_folder import HIDDEN, READ, is_free, new_file, unusable

_LEFT_BEHIND = 60.0
"""Seconds after which a file that never got its name is removed: its maker was killed."""
_MOST = 256
"""Files of one user that count: nobody else can fill the folder for all."""
_LONGEST = 16384
"""Bytes that are read of what others write."""
_LONGEST_WORD = 200
"""Characters that are kept of each of their words."""


class HeldFile:
    """A JSON file that counts until it is closed here, and wherever it was inherited.

    Parameters
    ----------
    file : io.FileIO
        Open and locked.
    """

    def __init__(self, file: io.FileIO) -> None:
        self.file = file

    @classmethod
    def create(cls, path: Path, content: dict[str, Any]) -> HeldFile:
        """Make a file, under a name that was never used before.

        Raises
        ------
        DistError
            If that is not possible.
        """
        try:
            fresh, file = new_file(path.parent, json.dumps(content).encode())
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fresh.rename(path)
        except OSError as error:
            raise unusable(path, error) from error
        return cls(file)

    def beat(self) -> None:
        """Show that the holder is not only there, but also at work."""
        os.utime(self.file.fileno())


def held_files(where: Path, suffix: str) -> list[dict[str, Any]]:
    """Return the content of every file that is held, in the order of names.

    Each has the fields that its holder wrote, ``gpus`` among them, and ``file``, its name,
    ``user``, its owner, and ``beat``, when it was last seen at work. Files that nobody holds are
    removed. Of each user a few hundred count. How long this takes is for other users to decide, so
    it has no place in an event loop.
    """
    found, counted = [], Counter[int]()
    for path, about in sorted(_files(where)):
        if path.name.startswith(HIDDEN):
            if time.time() - about.st_mtime > _LEFT_BEHIND:
                _remove(path)
        elif path.name.endswith(suffix) and counted[about.st_uid] < _MOST:
            counted[about.st_uid] += 1
            with contextlib.suppress(OSError):  # gone by now, or nothing that we have made
                if content := _look_at(path):
                    found.append(content)
    return found


def _files(where: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files, without those that have a second name: anybody's, put there."""
    with os.scandir(where) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone by now
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
                    yield Path(entry), about


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or another user's
        path.unlink()


def _look_at(path: Path) -> dict[str, Any] | None:
    with io.FileIO(os.open(path, READ), "r") as file:
        about = os.fstat(file.fileno())
        if not is_free(file, fcntl.LOCK_SH):
            content = _read(file.fileno())
            gpus = content.get("gpus")
            return {name: _plain(value) for name, value in content.items()} | {
                "gpus": [str(uuid) for uuid in gpus] if isinstance(gpus, list) else [],
                "user": name_of(about.st_uid),
                "file": path.name,
                "beat": about.st_mtime,
            }
        if stat.S_ISREG(about.st_mode):
            path.unlink()
    return None


def _read(descriptor: int) -> dict[str, Any]:
    for _ in range(3):  # it may be changed at this very moment
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(os.pread(descriptor, _LONGEST, 0))
            if isinstance(content, dict):
                return content
    return {}


def _plain(value: Any) -> str | int | float | None:
    """Return what may be shown of a value that another user wrote: it may be anything."""
    if isinstance(value, str):
        return "".join(filter(str.isprintable, value))[:_LONGEST_WORD]
    # As a moment, also: what is not finite, or beyond all calendars, breaks who shows it.
    return value if isinstance(value, int | float) and abs(value) < 2**32 else None


def name_of(user: int) -> str:
    """Return what a user is called."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # in a container, a user of the host's
        return str(user)
