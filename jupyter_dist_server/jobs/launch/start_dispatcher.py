"""The start of a dispatcher's process; `jdist` imports nothing else before its early start."""

from __future__ import annotations

import io
import os
from pathlib import Path

from ..variables import DISPATCHER, JOB
from .background import start_in_background
from .dispatcher_lock import take_lock

_DISPATCHER = "jupyter_dist_server.jobs.dispatcher_process"


def start_dispatcher(folder: Path, lock: io.FileIO, announced: int | None = None) -> None:
    """Start a dispatcher that is given its lock, or waits for it; see `Dispatcher` for `announced`."""
    given = [lock.fileno()] + ([] if announced is None else [announced])
    start_in_background(
        _DISPATCHER,
        [str(folder), *map(str, given)],
        folder / "dispatcher.log",
        pass_fds=given,
        env=os.environ | {DISPATCHER: "1"},
    )


def announce_job(folder: Path) -> None:
    """Start a dispatcher, if none runs, for a job that this process is about to submit.

    It imports what it needs while we do. It waits for a job until this process has ended.
    """
    if JOB in os.environ:  # the runner of that job starts it
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if lock := take_lock(folder):
        announced, _ = os.pipe2(os.O_CLOEXEC)  # the other end is closed when we end
        with lock:
            start_dispatcher(folder, lock, announced)
        os.close(announced)
