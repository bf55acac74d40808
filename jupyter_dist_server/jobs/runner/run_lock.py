"""The lock that a runner holds while it runs its job; the dispatcher takes it for the runner."""

from __future__ import annotations

import fcntl
import io
import os
from pathlib import Path

from ...common.files.own_files import own


def take_run_lock(path: Path) -> io.FileIO:
    """Open and lock the file of a job's attempt.

    `BlockingIOError` if a runner of an earlier attempt has not ended yet.
    """
    file = own(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file
