"""Jobs whose runner is gone: ends what is left of them, and writes what became of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Any

from ..common.patience import patience
from ..common.processes.process_ref import boot_id
from .end_file import start_again_if_asked, take_end
from .job_command import remove_folders
from .store.job import Job
from .store.states import CANCELLED, CONFIGURING, NODE_FAIL, NOT_STARTED, PENDING
from .store.store import Store
from .variables import JOB


def recover(store: Store) -> None:
    """Bring jobs that no process runs any more into a true state."""
    for job in store.active():
        if not _is_lost(store, job):
            continue
        if take_end(store, job):
            continue
        if job.boot == boot_id():
            end_leftovers(job)
        remove_folders(job, store)
        if job.state == CONFIGURING:  # its code has not run: the runner commits RUNNING before that
            wait_again(store, job)
        else:
            _end_lost(store, job)


def any_is_lost(store: Store) -> bool:
    """Tell whether an active job has no runner any more; nothing is changed."""
    return any(_is_lost(store, job) for job in store.active())


def _end_lost(store: Store, job: Job) -> None:
    """End a job whose code may have run, or start it again if it asked for that."""
    what = "The machine was restarted" if job.boot != boot_id() else "Its runner was killed"
    fields: dict[str, Any] = {"ended": time.time(), "reason": "None"}
    with store.writing():  # or the job would stay as it is, if we were killed in between
        if store.get(job.id).cancel_at is not None:  # it has ended, as somebody wanted
            store.move(job, CANCELLED, detail=f"Cancelled. {what} meanwhile.", **fields)
        elif store.move(job, NODE_FAIL, detail=f"{what}.", **fields):  # else somebody was faster
            start_again_if_asked(store, store.get(job.id))


def wait_again(store: Store, job: Job) -> None:
    """Let a job whose code has not run wait again, unless it was cancelled meanwhile."""
    fields: dict[str, Any] = {"launch": None, "gpu_uuids": (), "reason": "None"}
    with store.writing():
        if store.get(job.id).cancel_at is None:
            store.move(job, PENDING, detail="", **fields)
        else:
            store.move(job, CANCELLED, detail=NOT_STARTED, ended=time.time(), **fields)


def _is_lost(store: Store, job: Job) -> bool:
    """Tell whether neither a runner nor a dispatcher that starts one has the job."""
    if job.boot != boot_id():
        return True
    try:
        # Not for writing: closing that would wake whoever watches the folder, us first of all.
        lock = os.open(store.run_lock(job), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return store.get(job.id) == job
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return store.get(job.id) == job  # else it ended, or moved on, just now


def end_leftovers(job: Job) -> None:
    """Kill the processes that outlived their job's runner, by the variable in their environment."""
    import logging  # not above: to import them takes as long as many a command

    import psutil

    from ..common.processes.pool_processes import is_alive

    log = logging.getLogger(__name__)
    killed = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(JOB) == f"{job.id}.{job.launch}":
                log.info("Job %s: ending pid %s, which was left", job.label, process.pid)
                process.kill()
                killed.append(process)
    until = time.monotonic() + patience.cleanup
    while any(map(is_alive, killed)) and time.monotonic() < until:  # they have the GPUs until then
        time.sleep(0.01)
