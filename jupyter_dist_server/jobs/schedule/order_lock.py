"""The lock under which those who wait look and take, one after the other.

It only keeps them from wanting the same GPU at once. The GPUs have their own locks, so a process
that does not get this one in time goes on without it: any user may hold it for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator

from ...common.files.shared_folder import folder, is_free, lock_file
from ...common.patience import patience


@contextlib.contextmanager
def order_lock() -> Iterator[bool]:
    """Wait until no other process looks and takes; tell whether that is so."""
    with lock_file(folder() / "order.lock") as file:
        until = time.monotonic() + patience.answer
        while not (got := is_free(file, fcntl.LOCK_EX)) and time.monotonic() < until:
            time.sleep(0.005)  # flock knows no limit
        yield got
