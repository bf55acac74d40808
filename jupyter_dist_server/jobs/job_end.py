"""How jobs end: as their runners write it, or as others find out after a runner is gone.

A runner that cannot write to the store leaves the end in a file: beside the store or, if that is
not writable either, in ``/var/tmp``, which a restart of the machine does not empty.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..common.patience import patience
from ..common.processes.process_ref import boot_id
from .failing_arrays import look_at_array
from .job_command import remove_folders
from .series import submit_next
from .store.job import AGAIN, REQUEUES, Job
from .store.states import (
    CANCELLED,
    CONFIGURING,
    FAILED,
    NODE_FAIL,
    NOT_STARTED,
    OUT_OF_MEMORY,
    PENDING,
)
from .store.store import Store
from .store.store_folder import store_name
from .variables import JOB

TEMPORARY = Path("/var/tmp")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def start_again(store: Store, job: Job, detail: str) -> bool:
    """Put a job that has ended back into the queue; return whether it was still as it was read."""
    attempt = job.attempt if job.started is None else job.attempt + 1  # only a start counts
    fields = {"attempt": attempt, "queued": time.time()} | AGAIN
    return store.move(job, PENDING, reason="None", detail=detail, **fields)


def _start_again_if_asked(store: Store, job: Job) -> bool:
    """Put a job back into the queue if ``--requeue`` or ``--requeue-on`` asks for it."""
    if job.cancel_at is not None:
        return False
    if job.state == NODE_FAIL and job.attempt <= job.spec.requeue:
        return start_again(store, job, "Started again: its runner or the machine had failed.")
    asks = job.state in (FAILED, OUT_OF_MEMORY) and job.exit_code in job.spec.requeue_on
    if not asks or job.attempt > REQUEUES:
        return False
    return start_again(store, job, f"Started again: it ended with exit code {job.exit_code}.")


def _after_end(store: Store, job: Job) -> None:
    """Start a job again if it asks for that, or do what its end means for other jobs."""
    if not _start_again_if_asked(store, job):
        look_at_array(store, job)
        submit_next(store, job)


def write_end(store: Store, job: Job, fields: Mapping[str, Any]) -> None:
    """Write how a job ended, and put it back into the queue if it asked for that."""
    with store.writing():  # or the job would stay as it is, if we were killed in between
        if store.move(job, **fields):
            _after_end(store, store.get(job.id))


def _paths(store: Store, job: Job) -> Iterator[Path]:
    name = f"{job.id}.{job.attempt}.exit.json"
    yield store.folder / name
    yield TEMPORARY / f"jdist-{os.getuid()}-{store_name(store.folder)}-{name}"


def leave_end(store: Store, job: Job, fields: Mapping[str, Any]) -> None:
    """Keep the fields that the end of a job changes in a file."""
    import logging  # not above: commands in a terminal do without

    log = logging.getLogger(__name__)
    body = json.dumps(dict(fields)).encode()
    for path in _paths(store, job):
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            with os.fdopen(os.open(fresh, _WRITE, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())  # or the file may be empty after a power loss
            fresh.rename(path)  # half a file would hide the second place
            return
        except OSError as error:
            log.warning("The end of job %s cannot be kept in %s: %s", job.label, path, error)
            with contextlib.suppress(OSError):
                fresh.unlink()


def take_end(store: Store, job: Job) -> bool:
    """Bring a job to the end that its runner left in a file; return whether there was one."""
    for path in _paths(store, job):
        try:
            file = os.fdopen(os.open(path, _READ), "rb")
        except OSError:
            continue
        with file:
            if os.fstat(file.fileno()).st_uid != os.getuid():  # all may write among such files
                continue
            write_end(store, job, json.load(file))
        path.unlink(missing_ok=True)  # another process may have taken it, too
        return True
    return False


def recover(store: Store) -> None:
    """Bring jobs that no process runs any more into a true state."""
    for job in store.active():
        if not _is_lost(store, job) or take_end(store, job):
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
            _after_end(store, store.get(job.id))


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
            if process.environ().get(JOB) == job.run_name:
                log.info("Job %s: ending pid %s, which was left", job.label, process.pid)
                process.kill()
                killed.append(process)
    until = time.monotonic() + patience.cleanup
    while any(map(is_alive, killed)) and time.monotonic() < until:  # they have the GPUs until then
        time.sleep(0.01)
