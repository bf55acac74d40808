"""Starting the process that reads how much jobs use their GPUs, where such jobs run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ..store.store import Store
from ..variables import JOB
from .background import start_in_background

_PROCESS = "jupyter_dist_server.jobs.usage_reader"


def ensure_sampler(store: Store) -> None:
    """Start the process that reads GPUs, if a job with GPUs runs and no such process does."""
    if JOB in os.environ or not any(job.gpu_uuids for job in store.active()):
        return
    lock = open_lock(store.folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
    start_in_background(_PROCESS, [str(store.folder)], store.folder / "dispatcher.log")


def open_lock(folder: Path) -> int:
    """Open the file that the process locks while it runs."""
    return os.open(folder / "sampler.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
