"""Starting the dispatcher where jobs wait and none runs."""

from __future__ import annotations

import os

from ..store.job import JOB
from ..store.store import Store
from .background import start_in_background
from .dispatcher_lock import take_lock

DISPATCHER = "JUPYTER_DIST_DISPATCHER"
"""Environment variable of dispatchers and their runners: they are no part of a job."""
_DISPATCHER = "jupyter_dist_server.jobs.dispatcher_process"


def ensure(store: Store) -> None:
    """Start a dispatcher if jobs wait and none runs.

    It is given its lock, so that nobody starts a second one while it imports.
    """
    if store.is_idle() or _asks_runner(store) or not (lock := take_lock(store.folder)):
        return
    with lock:
        descriptor = lock.fileno()
        start_in_background(
            _DISPATCHER,
            [str(store.folder), str(descriptor)],
            store.folder / "dispatcher.log",
            pass_fds=[descriptor],
            env=os.environ | {DISPATCHER: "1"},
        )


def _asks_runner(store: Store) -> bool:
    """Have the runner of the job that we are in start it: what a job starts ends with the job."""
    id, _, launch = os.environ.get(JOB, "").partition(".")
    found = store.select("id = ? AND launch = ?", id, launch) if id.isdecimal() else []
    for job in found:
        job.poke()
    return bool(found)
