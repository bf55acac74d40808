"""Starting the dispatcher where jobs wait and none runs."""

from __future__ import annotations

import os

from ..store.store import Store
from ..variables import JOB
from .dispatcher_lock import open_lock, take_lock
from .start_dispatcher import start_dispatcher


def ensure(store: Store, *, also_if: bool = False) -> None:
    """Start a dispatcher if jobs wait, or `also_if` one is needed, and none runs.

    It is given its lock, so that no second one starts while it imports.
    """
    if not also_if and store.is_idle():
        return
    if _asks_runner(store):
        return
    lock = take_lock(store.folder)
    if lock is None and store.was_older:  # its dispatcher ends, once it has been woken
        store.was_older = False
        lock = open_lock(store.folder)
        store.changed()
    if lock:
        with lock:
            start_dispatcher(store.folder, lock)


def _asks_runner(store: Store) -> bool:
    """Have the runner of the job that we are in start it: what a job starts ends with the job."""
    id, _, launch = os.environ.get(JOB, "").partition(".")
    found = store.select("id = ? AND launch = ?", id, launch) if id.isdecimal() else []
    for job in found:
        job.poke()
    return bool(found)
