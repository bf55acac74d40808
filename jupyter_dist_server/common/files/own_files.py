"""Open files that a process keeps for itself: nothing that it forks or starts has them."""

from __future__ import annotations

import io
import os
import weakref

_owned: weakref.WeakSet[io.FileIO] = weakref.WeakSet()


def own(descriptor: int) -> io.FileIO:
    """Keep a descriptor for this process alone: what it forks or starts does not share it."""
    os.set_inheritable(descriptor, False)
    file = io.FileIO(descriptor, "r")
    _owned.add(file)
    return file


def _leave_to_parent() -> None:
    for file in list(_owned):
        file.close()


os.register_at_fork(after_in_child=_leave_to_parent)
