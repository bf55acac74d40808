"""Starting the dispatcher where jobs wait and none runs."""

from __future__ import annotations

import os
import subprocess
import sys

from ..common.interpreter import python_command
from .command import JOB
from .dispatcher_lock import is_running
from .store import Store

DISPATCHER = "JUPYTER_DIST_DISPATCHER"
"""Environment variable of dispatchers and their runners: they are no part of a job."""
_DISPATCHER = "jupyter_dist_server.jobs.dispatcher"


def ensure(store: Store) -> None:
    """Start a dispatcher if jobs wait and none runs."""
    if store.is_idle() or is_running(store.folder) or _asks_runner(store):
        return
    with open(store.folder / "dispatcher.log", "ab") as log:
        subprocess.Popen(
            [*python_command(sys.executable, _DISPATCHER), str(store.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=os.environ | {DISPATCHER: "1"},
            start_new_session=True,
        )


def _asks_runner(store: Store) -> bool:
    """Have the runner of the job that we are in start it: what a job starts ends with the job."""
    id, _, launch = os.environ.get(JOB, "").partition(".")
    found = store.select("id = ? AND launch = ?", id, launch) if id.isdecimal() else []
    for job in found:
        job.poke()
    return bool(found)
