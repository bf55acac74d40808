"""The end of a job, in the store, or in a file if its runner cannot write to the store.

The file is beside the store or, if that is not writable either, in ``/var/tmp``, which a restart of
the machine does not empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .store.job import AGAIN, REQUEUES, Job
from .store.states import FAILED, NODE_FAIL, OUT_OF_MEMORY, PENDING
from .store.store import Store
from .store.store_folder import store_name

TEMPORARY = Path("/var/tmp")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _paths(store: Store, job: Job) -> Iterator[Path]:
    name = f"{job.id}.{job.attempt}.exit.json"
    yield store.folder / name
    yield TEMPORARY / f"jdist-{os.getuid()}-{store_name(store.folder)}-{name}"


def start_again(store: Store, job: Job, detail: str) -> bool:
    """Put a job that has ended back into the queue; return whether it was still as it was read."""
    attempt = job.attempt if job.started is None else job.attempt + 1  # only a start counts
    fields = {"attempt": attempt, "queued": time.time()} | AGAIN
    return store.move(job, PENDING, reason="None", detail=detail, **fields)


def start_again_if_asked(store: Store, job: Job) -> None:
    """Put a job back into the queue if ``--requeue`` or ``--requeue-on`` asks for it."""
    if job.cancel_at is not None:
        return
    if job.state == NODE_FAIL and job.attempt <= job.spec.requeue:
        start_again(store, job, "Started again: its runner or the machine had failed.")
        return
    asks = job.state in (FAILED, OUT_OF_MEMORY) and job.exit_code in job.spec.requeue_on
    if asks and job.attempt <= REQUEUES:
        start_again(store, job, f"Started again: it ended with exit code {job.exit_code}.")


def write_end(store: Store, job: Job, fields: Mapping[str, Any]) -> None:
    """Write how a job ended, and put it back into the queue if it asked for that."""
    with store.writing():  # or the job would stay as it is, if we were killed in between
        if store.move(job, **fields):
            start_again_if_asked(store, store.get(job.id))


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
