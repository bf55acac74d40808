"""Open files that a process keeps for itself: its forks and subprocesses do not have them."""

from __future__ import annotations

import io
import os
import stat
import weakref


class OwnFolder:
    """An open folder, which Python's files cannot be."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_inheritable(descriptor, False)
        _owned.add(self)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close it, if that was not done before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


OwnFile = io.FileIO | OwnFolder

_owned: weakref.WeakSet[OwnFile] = weakref.WeakSet()


def own_any(descriptor: int) -> OwnFile:
    """Keep a descriptor of a file or a folder, as `own` does."""
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    return OwnFolder(descriptor) if is_folder else own(descriptor)


def own(descriptor: int) -> io.FileIO:
    """Keep a descriptor for this process alone."""
    os.set_inheritable(descriptor, False)
    file = io.FileIO(descriptor, "r")
    _owned.add(file)
    return file


def _leave_to_parent() -> None:
    for file in list(_owned):
        file.close()


os.register_at_fork(after_in_child=_leave_to_parent)
