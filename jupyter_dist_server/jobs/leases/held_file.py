"""Files with content that are valid while a process holds them."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ...common.files.shared_folder import HIDDEN, READ, is_free, new_file, unusable

T = TypeVar("T")

_MOST = 256
"""Files of one user that count: nobody can fill the folder for all."""


class HeldFile:
    """A locked file that counts until it is closed here, and wherever it was inherited."""

    def __init__(self, file: io.FileIO) -> None:
        self.file = file

    @classmethod
    def create(cls, path: Path, content: bytes) -> HeldFile:
        """Make a file, under a name that was never used before."""
        try:
            fresh, file = new_file(path.parent, content)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fresh.rename(path)
        except OSError as error:
            raise unusable(path, error) from error
        return cls(file)

    def beat(self) -> None:
        """Show that the holder is not only there, but also at work."""
        os.utime(self.file.fileno())

    def write(self, content: bytes) -> None:
        """Replace the content."""
        os.ftruncate(self.file.fileno(), os.pwrite(self.file.fileno(), content, 0))


def read_held(
    where: Path, suffix: str, decode: Callable[[bytes], T], longest: int, most: int = _MOST
) -> Iterator[tuple[str, os.stat_result, T | None]]:
    """Yield the name, the state and the content of every file that is held, in the order of names.

    The content is `None` if `decode` refuses it by `ValueError`. At most `longest` bytes are read
    of a file, and `most` files of a user. Files that nobody holds are removed. How long this takes
    is for other users to decide, so it has no place in an event loop.
    """
    counted = Counter[int]()
    for path, about in sorted(_files(where), key=lambda entry: entry[0]):
        if path.name.startswith(HIDDEN):
            if time.time() - about.st_mtime > 60.0:  # its maker was killed
                with contextlib.suppress(OSError):  # gone already, or another user's
                    path.unlink()
        elif path.name.endswith(suffix) and counted[about.st_uid] < most:
            counted[about.st_uid] += 1
            with contextlib.suppress(OSError):  # gone by now, or nothing that we have made
                yield from _look_at(path, decode, longest)


def _files(where: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files but hard links, which another user may have put there."""
    with contextlib.ExitStack() as opened:
        try:
            entries = opened.enter_context(os.scandir(where))
        except FileNotFoundError:  # somebody has just removed the folder, and all locks with it
            return
        for entry in entries:
            with contextlib.suppress(OSError):  # gone by now
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
                    yield Path(entry), about


def _look_at(
    path: Path, decode: Callable[[bytes], T], longest: int
) -> Iterator[tuple[str, os.stat_result, T | None]]:
    with io.FileIO(os.open(path, READ), "r") as file:
        about = os.fstat(file.fileno())
        if not is_free(file, fcntl.LOCK_SH):
            yield path.name, about, _read(file.fileno(), decode, longest)
        elif stat.S_ISREG(about.st_mode):
            path.unlink()


def _read(descriptor: int, decode: Callable[[bytes], T], longest: int) -> T | None:
    for _ in range(3):  # it may be changed at this very moment
        with contextlib.suppress(ValueError, RecursionError):
            return decode(os.pread(descriptor, longest, 0))
    return None
