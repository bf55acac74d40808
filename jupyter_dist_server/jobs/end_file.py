"""The end of a job in a file: where a runner leaves it that cannot write to the store.

That is beside the store or, where nothing can be written there either, among temporary files that
outlive a restart of the machine.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .schedule.situation import store_name
from .store.job import Job
from .store.store import Store

_LOG = logging.getLogger(__name__)

TEMPORARY = Path("/var/tmp")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _paths(store: Store, job: Job) -> Iterator[Path]:
    name = f"{job.id}.{job.attempt}.exit.json"
    yield store.folder / name
    yield TEMPORARY / f"jdist-{os.getuid()}-{store_name(store.folder)}-{name}"


def leave_end(store: Store, job: Job, fields: Mapping[str, Any]) -> None:
    """Write the fields of a job that its end changes."""
    body = json.dumps(dict(fields)).encode()
    for path in _paths(store, job):
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            with os.fdopen(os.open(fresh, _WRITE, 0o600), "wb") as file:
                file.write(body)
            fresh.rename(path)  # half a file would hide the second place
            return
        except OSError as error:
            _LOG.warning("The end of job %s cannot be kept in %s: %s", job.label, path, error)
            with contextlib.suppress(OSError):
                fresh.unlink()


def take_end(store: Store, job: Job) -> bool:
    """Bring a job to the end that its runner has left in a file; tell whether there was one."""
    for path in _paths(store, job):
        try:
            file = os.fdopen(os.open(path, _READ), "rb")
        except OSError:
            continue
        with file:
            if os.fstat(file.fileno()).st_uid != os.getuid():  # all may write among such files
                continue
            store.move(job, **json.load(file))
        path.unlink()
        return True
    return False
